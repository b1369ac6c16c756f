#!/usr/bin/env python3
"""documented_commands.py must find a command that fails, and run the others as printed."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/checks"))
import documented_commands  # noqa: E402

PAGE = """# A page
Text with `lamina help train`, `lamina plan` and `lamina plan CONFIG`.

    export PATH="$PWD/build/release/bin:$PATH"
    lamina train inputs/a.ini --run.dir runs/x     # a comment
    srun --mpi=pmix --cpus-per-task=8 build/release/bin/lamina train inputs/a.ini --train.steps 20
    sbatch jobs/a.sbatch
    cmake --preset release
    tools/check

```
    lamina is drawn here
```
"""
PROGRAM = """#!/bin/bash
echo "$*" >> "@LOG@"
case "$*" in *--train.steps\\ 20*) echo 'error: optim.warmup is 100: the run has 20 steps'; exit 64 ;; esac
"""


class DocumentedCommands(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        for name in ("inputs", "jobs", "tools", "bin"):
            (self.root / name).mkdir()
        (self.root / "inputs/a.ini").write_text("")
        (self.root / "jobs/a.sbatch").write_text("#!/bin/bash\nif\n")
        (self.root / "tools/check").write_text("#!/bin/bash\n[ \"$1\" = --help ]\n")
        (self.root / "tools/check").chmod(0o755)
        self.log = self.root / "log"
        program = self.root / "bin/lamina"
        program.write_text(PROGRAM.replace("@LOG@", str(self.log)))
        program.chmod(0o755)
        (self.root / "README.md").write_text(PAGE)

    def tearDown(self):
        self.folder.cleanup()

    def test_reads_commands(self):
        self.assertEqual([command for _, command in documented_commands.commands_of(PAGE)],
                         ["lamina help train", "lamina plan --help", 'export PATH="$PWD/build/release/bin:$PATH"',
                          "lamina train inputs/a.ini --run.dir runs/x",
                          "srun --mpi=pmix --cpus-per-task=8 build/release/bin/lamina train inputs/a.ini --train.steps 20",
                          "sbatch jobs/a.sbatch", "cmake --preset release", "tools/check"])

    def test_finds_what_fails(self):
        (self.root / "README.md").write_text(PAGE.split("help train`, ")[0].replace("`lamina ", "") + PAGE[PAGE.index("\n\n"):])
        found, count = documented_commands.defects(self.root, self.root / "bin")
        self.assertEqual(count, 5)
        self.assertEqual(len(found), 2, found)
        self.assertIn("ends with 64: error: optim.warmup is 100", found[0])
        self.assertIn("sbatch jobs/a.sbatch", found[1])
        called = self.log.read_text().split("\n")
        self.assertTrue(called[0].startswith("train inputs/a.ini --run.dir runs/x --train.micro_batch 1"), called)
        self.assertIn("--train.steps 12", called[0])
        self.assertNotIn("--train.steps 12", called[1])

    def test_the_picture_without_matplotlib_is_one_line(self):
        (self.root / "matplotlib.py").write_text("raise ImportError('absent')\n")
        (self.root / "timeline.json").write_text('{"traceEvents": []}')
        run = subprocess.run([sys.executable, str(ROOT / "tools/timeline_png.py"), "timeline.json", "out.png"], cwd=self.root,
                             env={"PYTHONPATH": str(self.root), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("python3-matplotlib", run.stderr)
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)


if __name__ == "__main__":
    unittest.main()
