#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The example active_messages: all sizes with loss, four senders at a time, a sender that is killed,
# and beside it one that is served. Runs in a network of its own.
# Use: active_messages_test.sh ACTIVE_MESSAGES
set -euo pipefail
program="$1"
scratch="$(mktemp -d)"
server=""
finish() {
  [[ -z "$server" ]] || kill -9 "$server" 2>/dev/null || true
  rm -rf "$scratch"
}
trap finish EXIT
export FI_UET_LOCAL=off FI_PROVIDER=uet

fail() {
  echo "FAILED: $*" >&2
  cat "$scratch"/* >&2
  exit 1
}
client() { timeout 500 "$program" --client 127.0.0.1 "$@" >>"$scratch/client" 2>&1; }

"$program" --server --ring 32768 >"$scratch/server" 2>&1 &
server=$!
for _ in $(seq 500); do
  if grep -q ':1D33 .* 0A ' /proc/net/tcp; then break; fi
  sleep 0.02
done
client || fail "one sender"
FI_UET_FAULTS="loss=1%,seed=5" client --threads 4 --rounds 5 || fail "four senders with loss"

# Until so many processes and senders have their UDP ports of 4793 to 5816.
await_ports() {
  for _ in $(seq 1500); do
    [[ "$(awk '{ split($2, at, ":"); n += at[2] >= "12B9" && at[2] <= "16B8" } END { print n }' /proc/net/udp)" -lt "$1" ]] ||
      return 0
    sleep 0.02
  done
  fail "no $1 ports after 30 s"
}

# The second client starts while the first one lives: at the address of a dead process it could get
# the answers to that one. The server has a port, and each sender.
"$program" --client 127.0.0.1 --rounds 1000000 >/dev/null 2>&1 &
killed=$!
await_ports 2
client --threads 2 --rounds 200 &
served=$!
await_ports 4
kill -9 "$killed"
wait "$killed" 2>/dev/null || true
wait "$served" || fail "a sender beside one that was killed"
kill "$server"
status=0
wait "$server" || status=$?
server=""
[[ "$status" == 0 ]] || fail "status $status of the server"
# 7 sizes and 14 of each round, and those of the killed sender.
handled="$(sed -n 's/ messages handled.*//p' "$scratch/server")"
[[ "$handled" -gt $((287 + 4 * 77 + 2 * 2807)) ]] || fail "$handled messages handled"
echo "active_messages: all is well"
