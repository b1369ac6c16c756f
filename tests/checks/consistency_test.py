#!/usr/bin/env python3
"""Plants each kind of defect in a small tree and sees that consistency.py finds it, and nothing in the clean tree."""

import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "checks"))
sys.dont_write_bytecode = True

import consistency  # noqa: E402

JOB = """#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
#SBATCH --output=%x-%j.log
#SBATCH --signal=USR2@120
#SBATCH --requeue
srun --mpi=pmix \\
  --cpus-per-task=8 lamina train inputs/a.ini --train.steps 10
code=$?
if [ "$code" -eq 75 ] || [ "$code" -eq 69 ]; then scontrol requeue "$SLURM_JOB_ID"; fi
"""
PROGRAM = r"""#!/bin/bash
if [ "$1" = --help ]; then
  printf '  lamina train FILE\n  lamina generate\n'
  exit
fi
if [ "$2" = --help ]; then
  echo "--help --prompt --train.steps"
  exit
fi
cat <<END
[run]
# where results go
dir = runs/default
seed = 0
[train]
steps = 100
a = 1
b = 1
c = 1
d = 1
e = 1
f = 1
g = 1
h = 1
END
"""
CLEAN = {"jobs/one.sbatch": JOB, "tools/go": "#!/bin/bash\necho hello\n", "inputs/a.ini": "[run]\ndir = x  # here\n[train]\nsteps = 3\n",
         "README.md": "Set `[train] steps` or `--train.steps 3`, and `--help`.\n", "tools/lamina": PROGRAM}


def defects(changes):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**CLEAN, **changes}.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            os.chmod(path, 0o755)
        return consistency.defects(folder, str(pathlib.Path(folder) / "tools/lamina"))


class PlantedDefects(unittest.TestCase):
    def assert_found(self, changes, *words):
        found = defects(changes)
        self.assertTrue([line for line in found if all(word in line for word in words)], f"no defect with {words} in {found}")

    def test_clean_tree_has_none(self):
        self.assertEqual(defects({}), [])

    def test_machine_paths(self):
        for path in ("/wo" + "rk/main", "/ho" + "me/somebody/x", "/ro" + "ot/x", "http://deb.deb" + "ian.org/debian"):
            with self.subTest(path=path):
                self.assert_found({"README.md": f"See {path}.\n"}, "README.md:1", "machine")

    def test_broken_script(self):
        self.assert_found({"tools/go": "#!/bin/bash\nif true; then\n"}, "tools/go", "bash -n")

    def test_job_without_resources(self):
        for option in consistency.REQUIRED_SBATCH + consistency.REQUIRED_TRAINING:
            with self.subTest(option=option):
                lines = [line for line in JOB.split("\n") if not line.startswith(f"#SBATCH --{option}")]
                self.assert_found({"jobs/one.sbatch": "\n".join(lines)}, "does not set --" + option)

    def test_job_with_malformed_line(self):
        self.assert_found({"jobs/one.sbatch": JOB.replace("#SBATCH --nodes=2", "#SBATCH nodes 2")}, "jobs/one.sbatch:3")

    def test_sbatch_after_a_command(self):
        self.assert_found({"jobs/one.sbatch": JOB + "#SBATCH --mem=0\n"}, "ignored by Slurm")

    def test_srun_without_pmix_or_cpus(self):
        self.assert_found({"jobs/one.sbatch": JOB.replace(" --mpi=pmix", "")}, "srun without --mpi=pmix")
        self.assert_found({"jobs/one.sbatch": JOB.replace("  --cpus-per-task=8", "  ")}, "srun without --cpus-per-task")

    def test_requeue_on_any_exit(self):
        self.assert_found({"jobs/one.sbatch": JOB.replace("-eq 75", "-ne 0")}, "requeues")

    def test_unknown_keys(self):
        self.assert_found({"inputs/a.ini": "[train]\nstepz = 3\n"}, "inputs/a.ini:2", "train.stepz")
        self.assert_found({"README.md": "Use `--train.stepz 3`.\n"}, "README.md:1", "train.stepz")
        self.assert_found({"README.md": "Use `[run] folder`.\n"}, "README.md:1", "run.folder")
        self.assert_found({"tools/go": "#!/bin/bash\nlamina train x --run.directory y\n"}, "tools/go:2", "run.directory")

    def test_unknown_options(self):
        self.assert_found({"README.md": "    lamina generate --promt x  # a --comment\n"}, "README.md:1", "--promt")
        self.assert_found({"tools/go": '#!/bin/bash\n"$bin/lamina" generate x \\\n  --temp 3\n'}, "tools/go", "--temp")
        self.assertEqual(defects({"README.md": "mpirun --bind-to none lamina train x --train.steps 3  # --not-this\n"}), [])


if __name__ == "__main__":
    unittest.main()
