#!/usr/bin/env bash
# Whether this pod does what it should: probe.sh coordinator|worker ENDPOINT
#
# The coordinator must answer. A worker must be among those it lists; without an answer nobody knows, and a worker is not
# restarted because the coordinator moves.
set -u

[[ -e /tmp/ended ]] && exit 0
ask() { crema cluster status --address="$2" --secret_key="/keys/$1.secret" --server_key=/keys/coordinator.public; }
if [[ $1 == coordinator ]]; then
  ask probe "$2" >/dev/null
else
  status=$(ask own "$2" 2>/dev/null) || exit 0
  [[ $status == ending* ]] || grep -qF " $HOSTNAME " <<<"$status"
fi
