#!/usr/bin/env python3
"""Runs the same-bits law over the whole product of strategies, node layouts, prefetch depths, buckets, units and batches.

The suite tests every pair of values (train/product); this is everything, which takes many hours: give it a night, a
part of the cases, or both. Cases are run in a shuffled order, so that what was run is a fair sample of all. Prints, for
each number of ranks, how many cases were run and how many failed. Exit code 0 when all that was run passed.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
REPORT = re.compile(r"^full product: ranks \d+ part \d+/\d+: (\d+) of (\d+) cases run, (\d+) failures$", re.MULTILINE)
ALL_RANKS = (1, 2, 3, 4, 6, 8)  # all divide the product's global batch


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release",
                        help="build folder (default: build/release)")
    parser.add_argument("--ranks", type=int, nargs="+", default=ALL_RANKS, choices=ALL_RANKS,
                        help="numbers of ranks (default: all)")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="every N-th case from the I-th (default: 1/1)")
    parser.add_argument("--minutes", type=float, default=0, help="stop after about so long (default: when all is done)")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2),
                        help="numbers of ranks tested at a time (default: half the cores; ranks mostly wait)")
    options = parser.parse_args()
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", options.part)
    if not match or int(match[1]) > int(match[2]):
        parser.error(f"--part is {options.part}: it must be I/N with I from 1 to N; such as 1/7 on Mondays")
    if options.minutes < 0 or options.jobs < 1:
        parser.error("--minutes must be at least 0 and --jobs at least 1")
    return options


def run(program, ranks, part, seconds):
    environment = dict(os.environ, LAMINA_FULL_PRODUCT=part, OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if seconds > 0:
        environment["LAMINA_FULL_PRODUCT_SECONDS"] = f"{seconds:.0f}"
    command = ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", str(program),
               "--gtest_filter=Product.TheWholeProductGivesTheSameBits"]
    begin = time.monotonic()
    result = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, check=False)
    return ranks, result, time.monotonic() - begin


def report(ranks, result, seconds):
    """Prints one line, and the output of a run that failed; returns whether it passed."""
    found = REPORT.search(result.stdout)
    passed = result.returncode == 0 and found is not None and found[3] == "0"
    if found:
        print(f"{ranks} ranks: {found[1]} of {found[2]} cases run in {seconds:.0f} s, {found[3]} failures", flush=True)
    else:
        print(f"{ranks} ranks: ended without a report after {seconds:.0f} s, exit code {result.returncode}", flush=True)
    if not passed:
        print(result.stdout, flush=True)
    return passed


def main():
    options = arguments()
    program = options.build / "tests" / "test_train_product"
    if not program.is_file():
        sys.exit(f"nightly_laws.py: {program} is missing: the tests are not built; build them, or give --build")
    rounds = -(-len(options.ranks) // options.jobs)
    seconds = 60 * options.minutes / rounds
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(run, program, ranks, options.part, seconds) for ranks in options.ranks]
        passed = [report(*done.result()) for done in concurrent.futures.as_completed(runs)]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
