#!/usr/bin/env bash
# Runs the coordinator as Kubernetes wants it: coordinator.sh FLAG...
#
# A pod that has to go is not the end of training: instead of SIGTERM, with which the coordinator would send the workers
# home, it gets SIGHUP, writes a snapshot and is killed. Workers wait for the next one (orphan_ms), which goes on from
# there. When training is done the container stays, idle: a StatefulSet would start it again.
set -u

rm -f /tmp/ended
train --snapshot=auto "$@" &
child=$!

newest() { find "$STATE" -name '*.solverstate' -newer /tmp/asked -print -quit; }
leave() {
  touch /tmp/asked
  kill -HUP "$child" 2>/dev/null
  for ((i = 0; i < GRACE; ++i)); do
    if ! kill -0 "$child" 2>/dev/null || [[ -n $(newest) ]]; then break; fi
    sleep 1
  done
  kill -KILL "$child" 2>/dev/null
  exit 0
}
trap leave TERM INT

while true; do
  wait "$child"
  code=$?
  kill -0 "$child" 2>/dev/null || break
done
if ((code != 0)); then exit "$code"; fi
echo "training has ended; the snapshots are in $STATE"
touch /tmp/ended
trap 'exit 0' TERM INT
sleep infinity &
wait
