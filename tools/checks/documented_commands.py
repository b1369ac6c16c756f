#!/usr/bin/env python3
"""Runs every command of the README and the pages, as printed, in a scratch copy of the tree.

documented_commands.py ROOT BIN      BIN: the folder of the programs that were built

Commands are the indented blocks of a page, and what a pair of backticks holds when it begins with a program of Lamina and has no
place-holder. Training is kept short by options that a stand-in for `lamina` adds behind the printed ones. Commands that build,
install or need Slurm are listed in REPLACED with what is done instead. Prints one line a defect; exit 1 if any.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PAGES = ("README.md", "inputs/README.md", "jobs/README.md", "jobs/running.md", "src/README.md", "tests/README.md")
COPIED = ("inputs", "jobs", "tools")
INLINE = re.compile(r"`((?:lamina|lamina-[a-z]+) [^`]*)`")
COMPLETE = re.compile(r"\bhelp\b|--dump-default|/")  # in the text; of a command's mere name the help is asked for
PLACE_HOLDER = re.compile(r"\.\.\.|\b[A-Z]{2,}\b")
# A command that matches is replaced by the second part (a shell command; \\1 is the first group); nothing: it is left out.
REPLACED = (
    (r"(?:sudo )?apt-get .*", None),            # changes the machine
    (r"cmake .*|ctest .*", None),               # what has built and runs this test
    (r"(tools/quickstart|tools/check)\b.*", r"\1 --help"),  # install packages and build everything
    (r"strip\(\) .*|bible .*", None),           # needs a package that nothing else needs
    (r"salloc .*", None),
    (r"srun .*?(\S*lamina .*)", r"\1"),         # without Slurm: one rank
    (r"sbatch (\S+).*", r"bash -n \1"),
    (r"(tools/timeline_png\.py .*)", r"\1 || python3 -c 'import matplotlib' 2>&1 | grep -q ModuleNotFoundError"),
)
STAND_IN = """#!/bin/bash
real='@BIN@/lamina'
[ "$1" = eval ] && exec "$real" "$@" --max_windows 2
[ "$1" = train ] || exec "$real" "$@"
case " $* " in *" --help "* | *" -h "* | *" --dump-default "*) exec "$real" "$@" ;; esac
batch=4 length=64 limits=()
case "$*" in *any_ranks*) batch=12 ;; *small.ini*) length=16 ;; esac
case "$*" in *--train.steps*) ;; *) limits=(--train.steps 12) ;; esac
exec "$real" "$@" --train.micro_batch 1 --train.global_batch "$batch" --data.seq_len "$length" --train.eval_sequences 4 \\
  --checkpoint.every 6 "${limits[@]}"
"""
LONGEST_SECONDS = 240  # for one command


def commands_of(text):
    """(line number, command) of a page, in order."""
    found, fenced, open_block = [], False, False
    previous = ""
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        if not fenced and line.startswith("    ") and (open_block or not previous.strip() or previous.startswith("#")):
            open_block = True
            command = re.sub(r"\s{2,}#.*", "", line.strip())
            if found and found[-1][1].endswith("\\"):
                found[-1] = (found[-1][0], found[-1][1][:-1] + command)
            else:
                found.append((number, command))
        else:
            open_block = False
            if not fenced:
                found += [(number, span) if COMPLETE.search(span) else (number, span + " --help")
                          for span in INLINE.findall(line) if not PLACE_HOLDER.search(span)]
        previous = line
    return found


def replacement(command):
    for pattern, instead in REPLACED:
        match = re.fullmatch(pattern, command)
        if match:
            return match.expand(instead) if instead else None
    return command


def scratch_tree(root, programs, folder):
    """A copy of what commands read, with programs where the pages say they are."""
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, folder / name)
    (folder / "runs").mkdir()
    bin_folder = folder / "build/release/bin"
    bin_folder.mkdir(parents=True)
    for program in programs.iterdir():
        if program.name != "lamina" and os.access(program, os.X_OK):
            (bin_folder / program.name).symlink_to(program)
    stand_in = bin_folder / "lamina"
    stand_in.write_text(STAND_IN.replace("@BIN@", str(programs)))
    stand_in.chmod(0o755)


def run_page(name, text, folder, environment):
    """Defects of one page, and how many commands were run. `environment` keeps what `export` sets."""
    defects, count = [], 0
    for number, command in commands_of(text):
        instead = replacement(command)
        if instead is None:
            continue
        count += 1
        if instead.startswith("export "):
            run = subprocess.run(["bash", "-c", f"{instead} && env -0"], cwd=folder, env=environment, capture_output=True, check=False)
            if run.returncode == 0:
                environment.clear()
                environment.update(pair.split("=", 1) for pair in run.stdout.decode().split("\0") if "=" in pair)
                continue
        try:
            run = subprocess.run(["bash", "-c", instead], cwd=folder, env=environment, capture_output=True, text=True, check=False,
                                 stdin=subprocess.DEVNULL, timeout=LONGEST_SECONDS, errors="replace")
        except subprocess.TimeoutExpired:
            defects.append(f"{name}:{number}: `{command}` does not end within {LONGEST_SECONDS} s")
            continue
        if run.returncode != 0:
            lines = (run.stderr.strip() or run.stdout.strip() or "no word").split("\n")
            told = next((line for line in lines if line.startswith("error:")), lines[-1])
            defects.append(f"{name}:{number}: `{command}` ends with {run.returncode}: {told}")
    return defects, count


def defects(root, programs):
    root, programs = pathlib.Path(root).resolve(), pathlib.Path(programs).resolve()
    found, count = [], 0
    with tempfile.TemporaryDirectory(prefix="lamina-pages-") as scratch:
        folder = pathlib.Path(scratch)
        scratch_tree(root, programs, folder)
        environment = {**os.environ, "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
        for name in PAGES:
            if (root / name).is_file():
                new, runs = run_page(name, (root / name).read_text(encoding="utf-8"), folder, environment)
                found, count = found + new, count + runs
    return found, count


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: documented_commands.py ROOT BIN")
    found, count = defects(sys.argv[1], sys.argv[2])
    for line in found:
        print(line)
    print(f"documented commands: {count} run, {len(found)} defects")
    sys.exit(1 if found or count == 0 else 0)


if __name__ == "__main__":
    main()
