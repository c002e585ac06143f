#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Results of uet_bench between two processes over loopback: one for each measurement of the plan, and
# percentiles of latencies that grow. Use: uet_bench_test.sh PROGRAM
set -euo pipefail
program="$1"
port=$((23000 + $$ % 5000))

# measure PLAN OPTION...: lines of the client in `results`.
measure() {
  local plan="$1" server
  shift
  port=$((port + 1))
  "$program" --server --port "$port" --plan "$plan" "$@" >/dev/null &
  server=$!
  for _ in $(seq 100); do
    grep -q "$(printf ':%04X 00000000:0000 0A' "$port")" /proc/net/tcp && break
    sleep 0.05
  done
  results="$("$program" --client 127.0.0.1 --port "$port" --plan "$plan" "$@")" || exit 1
  wait "$server"
}
# expect COUNT MODE: results of that mode, whose percentiles are above 0 and in order.
expect() {
  local found
  found="$(awk -v mode="mode=$2" '
    index($0, mode " ") {
      for (i = 1; i <= NF; ++i) { split($i, pair, "="); value[pair[1]] = pair[2] }
      good += value["p50"] > 0 && value["p50"] <= value["p99"] && value["p99"] <= value["p999"]
    }
    END { print good + 0 }' <<<"$results")"
  [[ "$found" == "$1" ]] || {
    printf 'expected %s results of mode %s with percentiles:\n%s\n' "$1" "$2" "$results"
    exit 1
  }
}

measure lat:64:200:1,lat:4096:100:1,beside:64:50:2 --tagged
expect 2 lat
expect 1 beside
measure lat:64:200:1 --tagged --sleep --ordered
expect 1 lat
measure bw:65536:4:4 --tagged --megabytes 50 # 0.26 MB: 5.2 ms at least
awk '$2 > 50.1 { exit 1 }' <<<"$results" || {
  echo "faster than --megabytes: $results"
  exit 1
}
if "$program" --client 127.0.0.1 --megabytes 0 2>/dev/null; then
  echo "--megabytes 0 is taken"
  exit 1
fi
