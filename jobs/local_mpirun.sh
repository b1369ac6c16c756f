#!/bin/bash
# A workstation: 2 ranks, 1 core each. Arguments are passed on: jobs/local_mpirun.sh --train.steps 100
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

RANKS=${RANKS:-2}
flags=()
[ "$(id -u)" -eq 0 ] && flags+=(--allow-run-as-root)
# More ranks than cores works but is slow; without these flags Open MPI refuses it.
[ "$(nproc)" -lt "$RANKS" ] && flags+=(--oversubscribe --bind-to none)

exec mpirun -n "$RANKS" "${flags[@]}" build/release/bin/lamina train inputs/quickstart.ini "$@"
