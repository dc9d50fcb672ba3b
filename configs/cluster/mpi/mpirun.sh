#!/usr/bin/env bash
# mpirun, but Ctrl-C ends in order: mpirun.sh -n 4 train --solver=SOLVER --engine=MPI [FLAG...]
#
# Ctrl-C or SIGTERM: all ranks write a snapshot and end, however long that takes, with exit code 0. SIGHUP: they write
# one and go on. A second Ctrl-C or SIGTERM ends them at once. mpirun alone kills ranks soon after the first one: that of
# Open MPI 5 after a quarter of a second.
#
# Takes what mpirun takes. Exit code: that of mpirun.
set -u

if [[ $# -eq 0 ]]; then
  echo "usage: $0 -n RANKS [FLAG OF MPIRUN...] train --solver=SOLVER --engine=MPI [FLAG...]" >&2
  exit 2
fi

# In a process group of its own: the terminal's Ctrl-C is for this script.
set -m
mpirun "$@" </dev/null &
ranks=$!

# mpirun passes USR1 and USR2 on to the ranks, and does nothing else; TERM ends them.
first=USR2
trap 'kill -"$first" "$ranks" 2>/dev/null; first=TERM' INT TERM
trap 'kill -USR2 "$ranks" 2>/dev/null' USR2
trap 'kill -USR1 "$ranks" 2>/dev/null' HUP USR1
while true; do
  wait "$ranks"
  code=$?
  kill -0 "$ranks" 2>/dev/null || break
done
exit "$code"
