#!/bin/bash
# A workstation: 2 ranks, 1 core each. Arguments are passed on: jobs/local_mpirun.sh --train.steps 100
# Ctrl-C or TERM: the ranks save at the end of their step, however long that takes. Once more: mpirun ends them.
set -euo pipefail
set -m # mpirun gets a process group of its own: Ctrl-C reaches this script, not mpirun
cd "$(dirname "${BASH_SOURCE[0]}")/.."

RANKS=${RANKS:-2}
LAMINA=${LAMINA:-build/release/bin/lamina}
# -q: without it Open MPI adds ten lines to every line of an error.
flags=(-q -n "$RANKS")
[ "$(id -u)" -eq 0 ] && flags+=(--allow-run-as-root)
# More ranks than cores works but is slow; without these flags Open MPI refuses it.
[ "$(nproc)" -lt "$RANKS" ] && flags+=(--oversubscribe --bind-to none)

mpirun "${flags[@]}" "$LAMINA" train inputs/quickstart.ini "$@" </dev/null &
mpirun=$!
signals=0
# shellcheck disable=SC2317 # the trap calls it
ask_to_stop() {
  signals=$((signals + 1))
  # mpirun passes USR2 on at once. After INT or TERM it would kill the ranks within two seconds.
  if [ "$signals" -eq 1 ]; then kill -USR2 "$mpirun"; else kill -TERM "$mpirun"; fi 2>/dev/null || true
}
trap ask_to_stop INT TERM

code=0
while :; do
  before=$signals
  code=0
  wait "$mpirun" || code=$?
  [ "$signals" -eq "$before" ] && break # it has ended; otherwise a signal ended the wait
done
if [ "$code" -ne 0 ] && [ "$code" -lt 64 ]; then
  echo "mpirun ended with $code: \`mpirun ${flags[*]:1} $LAMINA\` says why" >&2
fi
exit "$code"
