#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Shows that a recipe of docs/guides works: on a path between two hosts that is bad, or that the settings of the start
# do not fit, uet_bench measures less than a tenth of the rate that the path allows; after the block of the guide, which
# runs on both hosts as it stands, much more. Runs in the network of in_network; the path is made here.
# Use: recipe_test.sh REPOSITORY UET_BENCH UET_LONG_WIRE RECIPE      with FI_PROVIDER_PATH. Ends with 77, and says why, if
# something is not there.
set -euo pipefail
repository="$1" bench="$2" wire="$3" recipe="$4"
# shellcheck source=test/guides/block.sh
source "$(dirname "$0")/block.sh"

# Each recipe: the heading of its block, the path, the settings before, two plans of uet_bench (before, after), and the
# rate that the path allows in the unit of uet_bench: 100 Mbit/s are 12.5 MB/s. The plan before has two parts, of which
# the second counts: the first congestion window, which does not know the path yet, is in the first. `as` runs programs
# with fewer rights.
start=: as="" before=bw:65536:24:64,bw:65536:16:64 after=bw:65536:200:64 allowed=12.5 needs=()
link="tc qdisc add dev port-1 root tbf rate 100mbit burst 16kb limit"
bridge_rule() { # of a switch that filters
  nft add table bridge path
  nft 'add chain bridge path forward { type filter hook forward priority 0; }'
  nft add rule bridge path forward "$@"
}
long_wire() { # delay of each direction in us, jitter in us
  ip link set port-1 nomaster
  ip link set port-2 nomaster
  nice -n -15 "$wire" port-1 port-2 "delay_us=$1,jitter_us=${2:-0},rate_mbps=100,queue_bytes=1000000" &
  helpers+=($!)
}
# A link with two queues: packets of DSCP 8 have one, all others the other; each has half of the rate if both are full.
two_queues() {
  tc qdisc add dev port-1 root handle 1: htb default 1
  tc class add dev port-1 parent 1: classid 1:9 htb rate 100mbit burst 16kb quantum 60000
  tc class add dev port-1 parent 1:9 classid 1:1 htb rate 50mbit ceil 100mbit burst 16kb quantum 60000
  tc class add dev port-1 parent 1:9 classid 1:2 htb rate 50mbit ceil 100mbit burst 16kb quantum 60000
  bridge_rule ip dscp 8 meta priority set 1:2
}
# Three streams of TCP from host-3 to host-1, without end, which fill the queue.
tcp_load() {
  ip netns exec host-3 bash -c "echo reno >/proc/sys/net/ipv4/tcp_congestion_control"
  local port tcp=("$bench" --provider "tcp;ofi_rxm" --plan bw:65536:1000000000:64)
  for port in 7500 7501 7502; do
    ip netns exec host-1 "${tcp[@]}" --port "$port" --server &
    helpers+=($!)
    sleep 0.5
    ip netns exec host-3 "${tcp[@]}" --port "$port" --client 10.85.0.1 &
    helpers+=($!)
  done
  sleep 2
  kill -0 "${helpers[@]}"
}
case "$recipe" in
  long_path)
    guide=paths.md heading="A long path"
    start="export FI_UET_CC_LINK_RATE_MBPS=100"
    path() { long_wire 20000; }
    ;;
  few_operations)
    guide=paths.md heading="Few operations in progress"
    start="export FI_UET_TX_SIZE=16" before=rate:64:200:1024 after=rate:64:8000:1024 allowed=6400
    path() { long_wire 20000; }
    ;;
  control_class)
    guide=paths.md heading="A class that is limited" needs=(nft)
    path() { $link 300000 && bridge_rule ip dscp 46 limit rate over 5/second drop; }
    ;;
  lossy_link)
    guide=paths.md heading="One of several links loses packets" needs=(nft)
    # Eight links, chosen by a hash of the port that a packet leaves from; port 4793 gets the one that loses packets.
    start="export FI_UET_CC_LINK_RATE_MBPS=100 FI_UET_CC_BASE_RTT_US=5000" after=bw:65536:100:64,bw:65536:300:64
    path() {
      $link 300000 && bridge_rule udp dport 4793-5816 jhash udp sport mod 8 seed 8 0 numgen random mod 2 0 drop
    }
    ;;
  jitter)
    guide=paths.md heading="The RTT varies" start="export FI_UET_CC_LINK_RATE_MBPS=100"
    after=bw:65536:50:64,bw:65536:300:64
    path() { long_wire 500 60000; }
    ;;
  shared_queue)
    guide=paths.md heading="TCP in the same queue" start="export FI_UET_CC_LINK_RATE_MBPS=100" needs=(nft)
    before=bw:65536:2:64,bw:65536:16:64 after=bw:65536:16:64,bw:65536:150:64 allowed=6.25 # half of the link
    path() { two_queues && tcp_load; }
    ;;
  mtu_hole)
    guide=paths.md heading="Long packets vanish" start="export FI_UET_CC_LINK_RATE_MBPS=50"
    allowed=6.25 before=bw:65536:8:64 after=bw:65536:100:64
    path() { ${link/100mbit/50mbit} 500000 && ip link set port-1 mtu 1500; }
    ;;
  firewall)
    guide=firewall.md heading="Open the ports" needs=(nft)
    start="nft -f /dev/stdin <<<'table inet filter {
      chain input { type filter hook input priority 0; policy drop; meta l4proto { tcp, icmp } accept; }
    }'"
    path() { $link 300000; }
    ;;
  no_right)
    guide=containers.md heading="A right is missing" needs=(setpriv)
    start="export FI_UET_NIC=packet" before=bw:65536:8:64
    as="setpriv --bounding-set -net_raw --inh-caps -net_raw"
    path() { $link 300000; }
    ;;
  *)
    echo "no recipe $recipe"
    exit 1
    ;;
esac
for program in tc "${needs[@]}"; do
  command -v "$program" >/dev/null || {
    echo "SKIPPED: $program is not installed (Debian: apt-get install iproute2 nftables)"
    exit 77
  }
done
scratch="$(mktemp -d)"
helpers=()
trap '[[ ${#helpers[@]} -eq 0 ]] || kill -9 "${helpers[@]}" 2>/dev/null || true; rm -rf "$scratch"' EXIT
path >"$scratch/path" 2>&1 || {
  cat "$scratch/path"
  echo "SKIPPED: this machine cannot make the path (tc with tbf and htb, nft, TCP of libfabric)"
  exit 77
}
block="$scratch/block"
read_block "$repository/docs/guides/$guide" "$heading" "$block"

# rate SETTINGS PLAN SECONDS UNFINISHED: with more right to the processors than what else runs here, so that the path
# is what limits the rate. Sets result, the rate of uet_bench after both hosts have run SETTINGS. If the
# measurement does not end in time, result is 0, or with UNFINISHED "most" the most that the rate can have been.
rate() {
  local server limit="$3"
  ip netns exec host-1 bash -c "$1"$'\n'"exec nice -n -10 $as timeout -k 1 $limit $bench --server --plan $2" >"$scratch/server" 2>&1 &
  server=$!
  sleep 0.3
  ip netns exec host-2 bash -c "$1"$'\n'"exec nice -n -10 $as timeout -k 1 $limit $bench --client 10.85.0.1 --plan $2" \
    >"$scratch/client" 2>&1 || true
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  result="$(awk -v plan="$2" -v limit="$limit" -v unfinished="$4" '
    $1 == "result:" { ++found; last = $2 }
    END {
      parts = split(plan, part, ",")
      for (i = 1; i <= parts; ++i) { split(part[i], field, ":"); count += field[3] }
      if (found < parts && unfinished == 0) last = 0
      else if (found < parts) last = field[1] == "rate" ? count / limit : field[2] * count / limit / 1e6
      print last
    }' "$scratch/client")"
}
percent() { awk "BEGIN { printf \"%.1f %%\", 100 * $1 / $allowed }"; }

rate "$start" "$before" 3 most
slow="$result"
echo "before: $slow, at most $(percent "$slow") of what the path allows"
cat "$block"
# Below 10 % before and 80 % after. On a machine that is busy with other things both may be missed: then the first must
# be less than half of the second.
best=0
for _ in 1 2 3; do
  rate "$start"$'\n'"$(<"$block")" "$after" 8 0
  echo "after: $result, $(percent "$result")"
  ! holds "$result > $best" || best="$result"
  ! holds "$slow < 0.1 * $allowed && $best >= 0.8 * $allowed" || exit 0
done
holds "$slow < 0.5 * $best" || {
  cat "$scratch/client"
  echo "the recipe does not help"
  exit 1
}
echo "this machine is busy: the path before the recipe has less than half of the rate after it"
