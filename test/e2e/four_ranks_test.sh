#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The example four_ranks with the numbers of docs/walkthrough.md, on two hosts (network name spaces)
# that two rails join: the packets of its captures, and which rail they took.
# Use: four_ranks_test.sh UET_RUN FOUR_RANKS UET_DISSECT. Status 77: not tested, and why.
set -euo pipefail
if [[ "$1" != --inside ]]; then
  as_root=()
  [[ "$(id -u)" -eq 0 ]] || as_root=(--user --map-root-user)
  unshare "${as_root[@]}" --net --mount true 2>/dev/null || {
    echo "SKIPPED: no network name space can be made here (unshare --net); run as root"
    exit 77
  }
  command -v ip >/dev/null || {
    echo "SKIPPED: the command ip is not there (Debian: apt-get install iproute2)"
    exit 77
  }
  exec unshare "${as_root[@]}" --net --mount "$0" --inside "$@"
fi
run="$2" program="$3" dissect="$4"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
fail() {
  echo "FAILED: $*" >&2
  cat "$scratch"/out "$scratch"/words* >&2 || true
  exit 1
}

# West has 10.0.0.11 on rail 0 and .12 on rail 1; east 10.0.1.11 and .12.
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
ip netns add west
ip netns add east
ip -n west link set lo up
ip -n east link set lo up
for rail in 0 1; do
  ip link add "rail$rail" mtu 9000 netns west type veth peer name "rail$rail" mtu 9000 netns east
  west="10.0.0.1$((rail + 1))" east="10.0.1.1$((rail + 1))"
  ip -n west address add "$west/32" dev "rail$rail"
  ip -n east address add "$east/32" dev "rail$rail"
  ip -n west link set "rail$rail" up
  ip -n east link set "rail$rail" up
  ip -n west route add "$east/32" dev "rail$rail" src "$west"
  ip -n east route add "$west/32" dev "rail$rail" src "$east"
done
printf 'west:2\neast:2\n' >"$scratch/hosts"

# The payload of a packet as in the walkthrough; each rank writes a capture.
export FI_UET_PAYLOAD_MTU=4096 FI_UET_PCAP="$scratch/%p.pcapng"
timeout 40 ip netns exec west "$run" -n 4 --job-id 101 --hosts "$scratch/hosts" --master 10.0.0.11 \
  --launcher "ip netns exec {host} sh -c {command}" "$program" rail0 rail1 >"$scratch/out" 2>&1 ||
  fail "the job ends with status $?"
[[ "$(grep -c 'all right' "$scratch/out")" == 4 ]] || fail "four ranks are right"

number=0
for capture in "$scratch"/*.pcapng; do
  "$dissect" "$capture" >"$scratch/words$number"
  number=$((number + 1))
done
[[ "$number" == 4 ]] || fail "$number captures, not 4"
# Lines that the capture of a host shows of a write of 16,384 bytes, from one end and from the other.
for path in "10.0.0.11 10.0.1.11 2" "10.0.0.12 10.0.1.12 3" "10.0.1.11 10.0.0.11 0" "10.0.1.12 10.0.0.12 1"; do
  read -r from to pid <<<"$path"
  write="$from:[0-9]+ > $to:[0-9]+ +RUD_REQ .*WRITE REQUEST_STD msg 1 job 101 pid $pid ri 10 .* match 0xacce5 "
  for part in "at 0 of 16384 \[som rel\]" "at 4096 of 16384 \[rel\]" "at 8192 of 16384 \[rel\]" \
    "at 12288 of 16384 \[eom rel\]"; do
    found="$(cat "$scratch"/words* | grep -cE "$write.*$part payload 4096" || true)"
    # At least once at each end: a packet may be sent again.
    [[ "$found" -ge 2 ]] || fail "from $from to $to: $part: $found times in the captures"
  done
  grep -qE "$to:[0-9]+ > $from:[0-9]+ .* DEFAULT_RESPONSE OK .* job 101 msg 1 .* modified 16384" "$scratch"/words* ||
    fail "no response from $to to $from"
done
# Nothing of one rail on the other: each capture knows the addresses of its rail only.
for words in "$scratch"/words*; do
  addresses="$(grep -oE '10\.0\.[01]\.1[12]' "$words" | sort -u | tr '\n' ' ')"
  [[ "$addresses" == "10.0.0.11 10.0.1.11 " || "$addresses" == "10.0.0.12 10.0.1.12 " ]] ||
    fail "a rank sees $addresses"
done
echo "four_ranks: all is well"
