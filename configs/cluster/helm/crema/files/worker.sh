#!/usr/bin/env bash
# Runs a worker as Kubernetes wants it: worker.sh FLAG...
#
# SIGTERM makes it leave: it tells the coordinator, which gives its batches to others at once. Exit code 143 tells the Job
# that this was not the end, so that it starts another one elsewhere.
set -u

train "$@" &
child=$!
left=
trap 'left=1; kill -TERM "$child" 2>/dev/null' TERM INT
while true; do
  wait "$child"
  code=$?
  kill -0 "$child" 2>/dev/null || break
done
[[ -n $left ]] && code=143
exit "$code"
