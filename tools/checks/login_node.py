#!/usr/bin/env python3
"""Checks that a program loads neither MPI nor CUDA nor NCCL. Usage: login_node.py PROGRAM."""

import re
import subprocess
import sys

FORBIDDEN = re.compile(r"lib(mpi|open-rte|open-pal|cuda|cudart|cublas|nccl)[._-]")


def main():
    listing = subprocess.run(["ldd", sys.argv[1]], capture_output=True, text=True, check=True).stdout
    if "libc.so" not in listing:
        sys.exit(f"{sys.argv[1]}: ldd shows no C library, so it shows nothing:\n{listing}")
    found = [line.strip() for line in listing.splitlines() if FORBIDDEN.search(line)]
    if found:
        sys.exit(f"{sys.argv[1]} must run on a login node but loads:\n" + "\n".join(found))


if __name__ == "__main__":
    main()
