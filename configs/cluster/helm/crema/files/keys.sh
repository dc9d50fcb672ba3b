#!/usr/bin/env bash
# Copies the keys of a Secret to where crema takes them from. Kubernetes makes files of a Secret readable by a group and
# its folder writable by all, and crema trusts neither.
set -eu

umask 077
mkdir -p /keys/authorized
install -m 0400 /secret/own.secret /keys/own.secret
if [[ $1 == coordinator ]]; then
  for key in /secret/*.public; do
    [[ $key == */own.public ]] || install -m 0400 "$key" /keys/authorized/
  done
  install -m 0400 /secret/own.public /keys/coordinator.public
  # A key of its own for the probe, which asks as any worker might.
  rm -f /keys/probe.secret /keys/probe.public
  crema keygen --output=/keys/probe >/dev/null
  install -m 0400 /keys/probe.public /keys/authorized/probe.public
else
  install -m 0400 /secret/coordinator.public /keys/coordinator.public
fi
