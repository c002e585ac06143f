#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Shows that recipes of docs/guides whose measure is not a rate work: CPU time, memory, packets that are sent again. The
# quantity before the block of the guide must be a multiple of the quantity after it. Runs in the network of in_network.
# Use: process_test.sh REPOSITORY UET_BENCH RECIPE      with FI_PROVIDER_PATH. Ends with 77, and says why, if something is
# not there.
set -euo pipefail
repository="$1" bench="$2" recipe="$3"
# shellcheck source=test/guides/block.sh
source "$(dirname "$0")/block.sh"
scratch="$(mktemp -d)"
helpers=()
end_helpers() {
  [[ ${#helpers[@]} -eq 0 ]] || kill -9 "${helpers[@]}" 2>/dev/null || true
  helpers=()
  wait 2>/dev/null
}
trap 'end_helpers; rm -rf "$scratch"' EXIT
skip() {
  echo "SKIPPED: $1"
  exit 77
}

# Each recipe: the factor that the test demands, and measure(), which sets result. Its argument is empty, or the block.
case "$recipe" in
  waiting)
    guide=processes.md heading="Wait without polling" least=10 unit="ms of CPU in 2 s"
    command -v cc pkg-config >/dev/null || skip "no C compiler or no pkg-config (Debian: apt-get install gcc pkg-config)"
    pkg-config --exists libfabric || skip "no headers of libfabric (Debian: apt-get install libfabric-dev)"
    export FI_PROVIDER=uet
    measure() {
      local block=()
      [[ -z "$1" ]] || block=("-DBLOCK=\"$scratch/block\"")
      # shellcheck disable=SC2046
      cc -Wall -Wextra -Werror -Wno-missing-field-initializers -D_GNU_SOURCE "${block[@]}" -o "$scratch/waiting" \
        "$(dirname "$0")/waiting.c" $(pkg-config --cflags --libs libfabric)
      result="$(ip netns exec host-1 timeout -k 1 30 "$scratch/waiting" 2)"
    }
    ;;
  rings)
    guide=processes.md heading="Smaller rings" least=4 unit="KiB of shared memory"
    export FI_UET_LOCAL=auto
    # A server with three clients on the same host, which send for some seconds.
    measure() {
      local run=(ip netns exec host-1 bash -c "$1"$'\n''exec "$@"' bash "$bench" --clients 3 --plan bw:65536:1000000000:64)
      "${run[@]}" --server >"$scratch/server" 2>&1 &
      helpers=($!)
      sleep 1
      for _ in 1 2 3; do
        "${run[@]}" --client 10.85.0.1 >"$scratch/client" 2>&1 &
        helpers+=($!)
      done
      sleep 4
      result="$(sed -n 's/^RssShmem:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/${helpers[0]}/status")"
      end_helpers
    }
    ;;
  incast)
    guide=paths.md heading="Many senders to one receiver" least=10 unit="packets sent again for 100 packets"
    command -v tc >/dev/null || skip "tc is not installed (Debian: apt-get install iproute2)"
    tc qdisc add dev port-1 root tbf rate 20mbit burst 16kb limit 40000 2>"$scratch/tc" || skip "tc cannot make a slow link"
    # Four clients on host-2. The one whose number is printed has sent as many packets as each other one.
    measure() {
      local run=(bash -c "$1"$'\n''exec "$@"' bash nice -n -10 timeout -k 1 30 "$bench" --clients 4
        --plan "bw:65536:4:16,bw:65536:12:16")
      ip netns exec host-1 "${run[@]}" --server >"$scratch/server" 2>&1 &
      helpers=($!)
      sleep 1
      local clients=()
      for i in 1 2 3 4; do
        FI_UET_STATS="exit" ip netns exec host-2 "${run[@]}" --client 10.85.0.1 >"$scratch/client-$i" 2>&1 &
        clients+=($!)
      done
      wait "${clients[@]}" "${helpers[@]}" || true
      end_helpers
      sed -n 's/^result: \(.*s\) mode.*/all clients: \1/p' "$scratch/server"
      result="$(cat "$scratch"/client-? | awk '
        $1 == "pds_requests_sent" { requests += $2 }
        $1 ~ /^pds_(rto|nack|inferred_loss)_retransmissions$/ { again += $2 }
        END { printf "%.1f", requests ? 100 * again / requests : -1 }')"
    }
    ;;
  *)
    echo "no recipe $recipe"
    exit 1
    ;;
esac
read_block "$repository/docs/guides/$guide" "$heading" "$scratch/block"
cat "$scratch/block"
for _ in 1 2 3; do
  measure ""
  before="$result"
  measure "$(<"$scratch/block")"
  echo "before: $before, after: $result $unit"
  ! holds "$before > 0 && $result >= 0 && $before >= $least * $result" || exit 0
done
tail -n 20 "$scratch"/client* "$scratch"/server 2>/dev/null || true
echo "the recipe does not help: less than a factor of $least"
exit 1
