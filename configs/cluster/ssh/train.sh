#!/usr/bin/env bash
# Trains on machines that can be reached by ssh: train.sh HOSTS SOLVER [FLAG OF THE COORDINATOR...]
#
# The coordinator runs here, one worker for each line of the file HOSTS there (see hosts.example). What dies is started
# again, and training goes on from the newest snapshot; Ctrl-C or SIGTERM finishes the round, writes a snapshot and ends
# all. Exit code: the coordinator's.
#
# The solver file needs snapshot_prefix and, unless all workers are on this machine,
#   distributed { security { secret_key_file: "coordinator.secret" authorized_keys_dir: "workers" } }
#
# Change these in the environment:
#   CREMA_ADDRESS       where workers reach the coordinator (default tcp://THIS_HOST:5570)
#   CREMA_LISTEN        where it listens (default: that port on all interfaces)
#   CREMA_TRAIN         the program `train` here (default train)
#   CREMA_WORKER_TRAIN  the program `train` there (default: as CREMA_TRAIN)
#   CREMA_WORKER_FOLDER working directory there (default: the one here)
#   CREMA_WORKER_FLAGS  flags of all workers (default --secret_key=worker.secret --server_key=coordinator.public)
#   CREMA_SSH           how to reach them (default ssh -o BatchMode=yes -o ServerAliveInterval=10)
#   CREMA_MAX_RESTARTS  see ../restart.sh
set -u

here=$(cd "$(dirname "$0")" && pwd)
restart=$here/../restart.sh
train=${CREMA_TRAIN:-train}
worker_train=${CREMA_WORKER_TRAIN:-$train}
worker_folder=${CREMA_WORKER_FOLDER:-$PWD}
worker_flags=${CREMA_WORKER_FLAGS---secret_key=worker.secret --server_key=coordinator.public}
address=${CREMA_ADDRESS:-tcp://$(hostname -f):5570}
listen=${CREMA_LISTEN:-tcp://*:${address##*:}}
read -r -a ssh <<<"${CREMA_SSH:-ssh -o BatchMode=yes -o ServerAliveInterval=10}"

if [[ $# -lt 2 || ! -r $1 ]]; then
  echo "usage: $0 HOSTS SOLVER [FLAG...]   (HOSTS: a file, one worker a line: HOST [FLAG...])" >&2
  exit 2
fi
hosts_file=$1
solver=$2
shift 2

hosts=()
flags=()
while read -r host rest || [[ -n $host ]]; do
  [[ -z $host || $host == \#* ]] && continue
  hosts+=("$host")
  flags+=("${rest%%#*}")
done <"$hosts_file"
if [[ ${#hosts[@]} -eq 0 ]]; then
  echo "$0: $hosts_file names no host" >&2
  exit 2
fi

# With the first start there is no snapshot, and auto begins afresh.
snapshot=(--snapshot=auto)
for flag in "$@"; do
  [[ $flag == --snapshot* ]] && snapshot=()
done

# Each in a process group of its own: Ctrl-C is for this script, which ends training in order.
set -m
"$restart" "$train" --solver="$solver" --coordinate="$listen" --expect="${#hosts[@]}" "${snapshot[@]}" "$@" &
coordinator=$!
workers=()
for i in "${!hosts[@]}"; do
  # Names start with the place in the file, for a host may be there twice. With a terminal (-tt) the worker gets SIGHUP
  # when the connection ends; stop tells the coordinator that it leaves.
  command="cd $(printf %q "$worker_folder") && exec $worker_train --join=$address --worker_name=$i-${hosts[i]}"
  command+=" --sighup_effect=stop $worker_flags ${flags[i]}"
  "$restart" "${ssh[@]}" -tt -n "${hosts[i]}" "$command" &
  workers+=("$!")
done
set +m

asked=
stop() {
  asked=1
  # Once: finish the round and write a snapshot; once more: at once. The supervisor passes both on.
  kill -TERM "$coordinator" 2>/dev/null
}
trap stop TERM INT HUP

running() {
  local pid
  for pid in "${workers[@]}"; do
    kill -0 "$pid" 2>/dev/null && return 0
  done
  return 1
}

abandoned=
while kill -0 "$coordinator" 2>/dev/null; do
  sleep 1 &
  wait $! 2>/dev/null
  if [[ -z $asked$abandoned ]] && ! running; then
    # At the end of training they are through a moment before the coordinator, which tests and writes.
    for ((i = 0; i < 60; ++i)); do
      kill -0 "$coordinator" 2>/dev/null || break
      sleep 1
    done
    kill -0 "$coordinator" 2>/dev/null || break
    echo "$0: no worker is left; ending" >&2
    abandoned=1
    stop
  fi
done
wait "$coordinator"
code=$?
# They heard that training is over; of a coordinator that failed they did not.
for ((i = 0; i < 10 && code == 0; ++i)); do
  running || break
  sleep 1
done
for pid in "${workers[@]}"; do
  kill -TERM "$pid" 2>/dev/null
done
wait
[[ -n $abandoned && $code -eq 0 ]] && code=1
exit "$code"
