#!/usr/bin/env bash
# Lets mpirun start a training: mpirun -np 5 train.sh SOLVER [FLAG OF THE COORDINATOR...]
#
# Rank 0 coordinates, the others are its workers: -np is one more than there are workers. mpirun only starts processes
# here; what is said between them goes over the coordinator's port. Because mpirun ends a job of which one process
# fails, each rank restarts its own program, and says so. Knows the variables of Open MPI and of PMI (MPICH, Intel MPI).
#
# The solver file needs snapshot_prefix and, unless all ranks are on this machine,
#   distributed { security { secret_key_file: "coordinator.secret" authorized_keys_dir: "workers" } }
#
# Change these in the environment (mpirun -x NAME passes them on):
#   CREMA_ADDRESS       where rank 0 is reached, tcp://HOST:5570. Default: rank 0 writes it to a file in the working
#                       directory, which then must be shared by all ranks
#   CREMA_PORT          without CREMA_ADDRESS: the port (default 5570)
#   CREMA_TRAIN         the program `train` (default train)
#   CREMA_WORKER_FLAGS  flags of all workers (default --secret_key=worker.secret --server_key=coordinator.public); in it
#                       %r becomes the rank, %l the rank on its machine: --gpu=%l
#   CREMA_MAX_RESTARTS  see ../restart.sh
set -u

here=$(cd "$(dirname "$0")" && pwd)
restart=$here/../restart.sh
train=${CREMA_TRAIN:-train}
worker_flags=${CREMA_WORKER_FLAGS---secret_key=worker.secret --server_key=coordinator.public}
rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-}}}
size=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:-}}
local_rank=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-0}}

if [[ $# -lt 1 ]]; then
  echo "usage: mpirun -np N+1 $0 SOLVER [FLAG...]" >&2
  exit 2
fi
if [[ -z $rank || -z $size ]]; then
  echo "$0: neither OMPI_COMM_WORLD_RANK nor PMI_RANK is set: start it with mpirun" >&2
  exit 2
fi
if ((size < 2)); then
  echo "$0: one process cannot both coordinate and train: mpirun -np 2 or more" >&2
  exit 2
fi
solver=$1
shift

job=${PMIX_NAMESPACE:-${OMPI_MCA_ess_base_jobid:-}}
if [[ -z ${CREMA_ADDRESS:-} && -z $job ]]; then
  echo "$0: mpirun does not name its job; set CREMA_ADDRESS=tcp://HOST_OF_RANK_0:5570" >&2
  exit 2
fi
meeting=$PWD/.crema_address.${job//[^A-Za-z0-9_.-]/_}

if ((rank == 0)); then
  address=${CREMA_ADDRESS:-tcp://$(hostname -f):${CREMA_PORT:-5570}}
  snapshot=(--snapshot=auto)
  for flag in "$@"; do
    [[ $flag == --snapshot* ]] && snapshot=()
  done
  if [[ -z ${CREMA_ADDRESS:-} ]]; then
    trap 'rm -f "$meeting"' EXIT
    echo "$address" >"$meeting.new" && mv "$meeting.new" "$meeting" || exit 1
  fi
  "$restart" "$train" --solver="$solver" --coordinate="tcp://*:${address##*:}" --expect=$((size - 1)) \
    "${snapshot[@]}" "$@" &
else
  address=${CREMA_ADDRESS:-}
  for ((i = 0; i < 60 && ${#address} == 0; ++i)); do
    if [[ -s $meeting ]]; then
      address=$(<"$meeting")
    else
      sleep 1
    fi
  done
  if [[ -z $address ]]; then
    echo "$0: rank 0 did not write $meeting within a minute: share $PWD between the machines, or set CREMA_ADDRESS" >&2
    exit 2
  fi
  worker_flags=${worker_flags//%r/$rank}
  read -r -a worker_flags <<<"${worker_flags//%l/$local_rank}"
  "$restart" "$train" --join="$address" --worker_name="rank-$rank" "${worker_flags[@]}" &
fi

child=$!
trap 'kill -TERM "$child" 2>/dev/null' TERM INT HUP
while true; do
  wait "$child"
  code=$?
  kill -0 "$child" 2>/dev/null || break
done
exit "$code"
