#!/usr/bin/env python3
"""Checks scripts, job files and documents against each other and against the program.

consistency.py ROOT                  scripts parse, job files ask for what they must, nothing names this machine
consistency.py ROOT --program LAMINA also: every configuration key and option in inputs/, jobs/ and documents is one that the
                                     programs beside LAMINA know
Prints one line a defect; exit 1 if any.
"""

import pathlib
import re
import shutil
import subprocess
import sys

TEXT_SUFFIXES = {"", ".md", ".txt", ".ini", ".json", ".sh", ".sbatch", ".py", ".cmake", ".cpp", ".hpp", ".cu", ".in"}
# Folders of one person's or one machine's home, and addresses of package registries. Split so that this file passes.
MACHINE_WORDS = re.compile(r"(?<![\w.])/(?:wo" r"rk|ro" r"ot|ho" r"me|Us" r"ers)/\w|deb\.deb" r"ian\.org|py" r"pi\.org|files\.pyth" r"onhosted")
REQUIRED_SBATCH = ("job-name", "nodes", "ntasks-per-node", "cpus-per-task", "time", "output")
REQUIRED_TRAINING = ("signal", "requeue")  # of jobs that train: time to save before the limit, and to go on after it
SBATCH_OPTION = re.compile(r"#SBATCH\s+--([a-z-]+)(?:=(\S+))?\s*(?:#.*)?$")
OPTION = re.compile(r"(?<![\w-])--([a-z_]+\.[a-z0-9_]+)")
COMMAND = re.compile(r"\b(lamina [a-z]+|lamina-[a-z]+)\b[\"']?([^`#|;&]*)")
ANY_OPTION = re.compile(r"(?<![\w-])--([a-z][\w.-]*)")
QUOTED_KEY = re.compile(r"`\[([a-z_]+)\] ([a-z0-9_]+)`")


def tracked_files(root):
    """Paths relative to `root` that git tracks; all files where there is no git."""
    listing = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, check=False)
    if listing.returncode == 0 and listing.stdout:
        names = [pathlib.Path(n) for n in listing.stdout.decode().split("\0") if n]
        return sorted(n for n in names if (root / n).is_file())
    return sorted(p.relative_to(root) for p in root.rglob("*") if p.is_file() and "build" not in p.relative_to(root).parts)


def read(path):
    return path.read_text(encoding="utf-8", errors="replace")


def check_machine_words(root, files):
    for name in files:
        if name.suffix not in TEXT_SUFFIXES:
            continue
        for number, line in enumerate(read(root / name).split("\n"), 1):
            match = MACHINE_WORDS.search(line)
            if match:
                yield f"{name}:{number}: names a machine's own path or a registry: {match.group()}"


def is_script(root, name):
    if name.suffix in (".sh", ".sbatch"):
        return True
    with open(root / name, "rb") as file:
        return re.match(rb"#!.*\b(bash|sh)\b", file.readline(100)) is not None


def check_scripts(root, files):
    scripts = [name for name in files if is_script(root, name)]
    if not scripts:
        yield f"{root}: no shell scripts found; pass the root of the project"
    shellcheck = shutil.which("shellcheck")
    for name in scripts:
        run = subprocess.run(["bash", "-n", str(root / name)], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            yield f"{name}: bash -n: {run.stderr.strip()}"
        if name.suffix != ".sbatch" and not (root / name).stat().st_mode & 0o111:
            yield f"{name}: script is not executable"
        if shellcheck:
            run = subprocess.run([shellcheck, "-x", "--shell=bash", "--format=gcc", str(name)], cwd=root, capture_output=True,
                                 text=True, check=False)
            yield from (f"shellcheck: {line}" for line in run.stdout.splitlines())


def check_jobs(root, files):
    for name in (f for f in files if f.suffix == ".sbatch"):
        text = read(root / name)
        lines = text.split("\n")
        if not lines[0].startswith("#!/bin/bash"):
            yield f"{name}:1: a batch script begins with #!/bin/bash"
        asked = {}
        for number, line in enumerate(lines, 1):
            if not line.startswith("#SBATCH"):
                continue
            option = SBATCH_OPTION.match(line)
            if not option:
                yield f"{name}:{number}: not of the form #SBATCH --option[=value]: {line}"
                continue
            asked[option.group(1)] = option.group(2)
            if any(earlier.strip() and not earlier.startswith("#") for earlier in lines[: number - 1]):
                yield f"{name}:{number}: #SBATCH after the first command is ignored by Slurm"
        for option in REQUIRED_SBATCH + (REQUIRED_TRAINING if "lamina train" in text else ()):
            if option not in asked:
                yield f"{name}: does not set --{option}"
        yield from check_srun(name, text)


def check_srun(name, text):
    """Slurm 22.05: srun starts singletons without PMIx, and does not inherit --cpus-per-task."""
    joined = text.replace("\\\n", " ")
    for line in joined.split("\n"):
        if re.match(r"\s*srun\b", line):
            for option in ("--mpi=pmix", "--cpus-per-task"):
                if option not in line:
                    yield f"{name}: srun without {option}: {line.strip()}"
    if "scontrol requeue" in joined and not (re.search(r"\b75\b", joined) and re.search(r"\b69\b", joined)):
        yield f"{name}: requeues, but not for exit codes 75 and 69"


def parse_ini(text):
    """section.key of each setting, with its line; the form that lamina train reads and --dump-default writes."""
    keys, section = [], None
    for number, line in enumerate(text.split("\n"), 1):
        line = line.split("#")[0].strip()
        heading = re.fullmatch(r"\[([a-z_]+)\]", line)
        if heading:
            section = heading.group(1)
        elif "=" in line:
            keys.append((f"{section}.{line.split('=')[0].strip()}", number))
    return keys


def known_keys(program):
    run = subprocess.run([program, "train", "--dump-default"], capture_output=True, text=True, check=True)
    keys = {key for key, _ in parse_ini(run.stdout)}
    if len(keys) < 10:
        raise SystemExit(f"{program} train --dump-default shows only {len(keys)} keys")
    return keys


def check_keys(root, files, keys):
    sections = {key.split(".")[0] for key in keys}
    for name in files:
        if name.suffix == ".ini":
            for key, number in parse_ini(read(root / name)):
                if key not in keys:
                    yield f"{name}:{number}: {key} is no key of lamina train"
        elif name.suffix in (".md", ".sh", ".sbatch", "") and name.parts[0] != "tests":
            for number, line in enumerate(read(root / name).split("\n"), 1):
                named = OPTION.findall(line) + [".".join(pair) for pair in QUOTED_KEY.findall(line)]
                for key in named:
                    if key.split(".")[0] in sections and key not in keys:
                        yield f"{name}:{number}: --{key} is no option of lamina train"


def known_options(program):
    """command -> the options in its --help, for each program that was built."""
    overview = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    commands = {f"lamina {name}": [program, name] for name in re.findall(r"^ +lamina ([a-z]+)\b", overview, re.M)}
    for name in ("consolidate", "inspect", "tokenize"):
        other = pathlib.Path(program).with_name(f"lamina-{name}")
        if other.is_file():
            commands[f"lamina-{name}"] = [str(other)]
    texts = {name: subprocess.run([*words, "--help"], capture_output=True, text=True, check=True).stdout
             for name, words in commands.items()}
    return {name: set(ANY_OPTION.findall(text)) for name, text in texts.items()}


def check_commands(root, files, options):
    """Options behind the name of a command, in documents and scripts."""
    for name in files:
        if name.suffix not in (".md", ".sh", ".sbatch", "") or name.parts[0] == "tests":
            continue
        text = read(root / name)
        text = text.replace('"$bin/lamina"', "lamina").replace("\\\n", " ")
        for number, line in enumerate(text.split("\n"), 1):
            for command, rest in COMMAND.findall(line):
                for option in ANY_OPTION.findall(rest):
                    if command in options and option not in options[command]:
                        yield f"{name}:{number}: {command} has no option --{option}"


def defects(root, program=None):
    root = pathlib.Path(root)
    files = tracked_files(root)
    found = [*check_machine_words(root, files), *check_scripts(root, files), *check_jobs(root, files)]
    if program:
        found += check_keys(root, files, known_keys(program))
        found += check_commands(root, files, known_options(program))
    return found


def main():
    arguments = sys.argv[1:]
    if len(arguments) not in (1, 3) or (len(arguments) == 3 and arguments[1] != "--program"):
        sys.exit("usage: consistency.py ROOT [--program LAMINA]")
    found = defects(arguments[0], arguments[2] if len(arguments) == 3 else None)
    for line in found:
        print(line)
    print(f"consistency: {len(found)} defects")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
