#!/usr/bin/env bash
# Runs a command, and runs it again when it fails: restart.sh COMMAND [ARGUMENT...]
#
# Exit code 0 is the end, and so are 2 (a mistake that no second try mends), 126 and 127 (there is no such program).
# After anything else it waits 1 s, then 2, 4, ... up to 60 s. SIGTERM, SIGINT and SIGHUP end the command, by SIGTERM, and
# the trying.
#
#   CREMA_MAX_RESTARTS  tries in a row after which it gives up; a run of a minute or more begins a new row (default 5)
set -u

max_restarts=${CREMA_MAX_RESTARTS:-5}
forgive_after=60
longest_wait=60

if [[ $# -eq 0 ]]; then
  echo "usage: $0 COMMAND [ARGUMENT...]" >&2
  exit 2
fi

child=
ending=
end() {
  ending=1
  [[ -n $child ]] && kill -TERM "$child" 2>/dev/null
}
trap end TERM INT HUP

restarts=0
pause=1
while true; do
  started=$SECONDS
  "$@" &
  child=$!
  # `wait` returns early when a signal comes.
  while true; do
    wait "$child"
    code=$?
    kill -0 "$child" 2>/dev/null || break
  done
  child=
  [[ -n $ending || $code -eq 0 ]] && exit "$code"
  case $code in
    2 | 126 | 127) exit "$code" ;;
  esac
  if ((SECONDS - started >= forgive_after)); then
    restarts=0
    pause=1
  fi
  if ((restarts >= max_restarts)); then
    echo "restart.sh: exit code $code after $restarts restarts in a row; giving up: $*" >&2
    exit "$code"
  fi
  restarts=$((restarts + 1))
  echo "restart.sh: exit code $code; restart $restarts of $max_restarts in $pause s: $*" >&2
  sleep "$pause" &
  child=$!
  wait "$child"
  child=
  [[ -n $ending ]] && exit "$code"
  pause=$((pause * 2 < longest_wait ? pause * 2 : longest_wait))
done
