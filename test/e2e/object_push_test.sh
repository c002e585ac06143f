#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The example object_push with loss: right bytes, no PDC for the writes, a server that dies costs its
# object only, and the death of the client ends the servers. Runs in a network of its own.
# Use: object_push_test.sh OBJECT_PUSH
set -euo pipefail
program="$1"
scratch="$(mktemp -d)"
client=""
finish() {
  [[ -z "$client" ]] || kill "$client" 2>/dev/null || true
  rm -rf "$scratch"
}
trap finish EXIT
export FI_UET_LOCAL=off FI_PROVIDER=uet

fail() {
  echo "FAILED: $*" >&2
  cat "$scratch"/* >&2
  exit 1
}
# start_client OPTION...: and waits until it listens.
start_client() {
  "$program" --client "$@" >"$scratch/client" 2>&1 &
  client=$!
  for _ in $(seq 500); do
    if grep -q ':1D31 .* 0A ' /proc/net/tcp; then return; fi
    sleep 0.02
  done
  fail "the client does not listen"
}

# Three objects; one server of the second dies half-way.
start_client --objects 3
FI_UET_FAULTS="loss=1%,seed=5" timeout 100 "$program" --serve 127.0.0.1 --objects 3 --lose 2 \
  >"$scratch/servers" 2>&1 || fail "the servers"
wait "$client" || fail "the client"
client=""
[[ "$(grep -c right "$scratch/client")" == 2 ]] || fail "two objects are right"
grep -q 'object 2: lost' "$scratch/client" || fail "one is lost"
# One PDC for each of the three messages; the writes, of 24 processes, have none.
grep -q 'PDCs at the client: 3' "$scratch/client" || fail "the writes have PDCs"

# A client that dies: the servers end with an error, and in bounded time.
start_client --objects 50
timeout 100 "$program" --serve 127.0.0.1 --objects 50 >"$scratch/servers" 2>&1 &
servers=$!
until grep -q 'object 2' "$scratch/servers"; do sleep 0.02; done
kill -9 "$client"
wait "$client" 2>/dev/null || true
client=""
status=0
wait "$servers" || status=$?
[[ "$status" == 1 ]] || fail "status $status of the servers, not 1"
echo "object_push: all is well"
