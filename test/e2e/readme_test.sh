#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Runs the block of DOCUMENT below the heading HEADING as it stands, and demands that it succeeds and that packets
# went over uet. Ends with 77, and says why, if a NEED is not there: the name of a program, or VARIABLE:PATH, the
# file PATH below the directory that VARIABLE names (or, without PATH, the file that it names).
# BUILD is where the blocks say build/release.
# Use: readme_test.sh REPOSITORY BUILD DOCUMENT HEADING NEED...    with FI_PROVIDER_PATH
set -euo pipefail

repository="$1" build="$2" document="$3" heading="$4"
shift 4
for need in "$@"; do
  if [[ "$need" == *:* ]]; then
    variable="${need%%:*}"
    [[ -n "${!variable:-}" && -r "${!variable}${need#*:}" ]] || {
      echo "skipped: $variable names nothing with ${need#*:} ($document says what it is)"
      exit 77
    }
    continue
  fi
  command -v "$need" >/dev/null || {
    echo "skipped: $need is not installed"
    exit 77
  }
done
# A name space of its own keeps the ports of these programs apart from those of others.
if [[ -z "${UET_README_NETWORK:-}" ]] && unshare --net true 2>/dev/null; then
  export UET_README_NETWORK=own
  exec unshare --net "$0" "$repository" "$build" "$document" "$heading" "$@"
fi
[[ "${UET_README_NETWORK:-}" != own ]] || ip link set lo up

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
ln -s "$repository/examples" "$repository/scripts" "$scratch/"
mkdir "$scratch/build"
ln -s "$build" "$scratch/build/release"
cd "$scratch"
awk -v heading="$heading" '
  /^#/ && !inside { here = ($0 == "## " heading || $0 == "### " heading) }
  /^```/ { inside = !inside; next }
  here && inside { print }' "$repository/$document" >block
[[ -s block ]] || {
  echo "$document has no block below '$heading'"
  exit 1
}
cat block
# mpirun refuses root otherwise. The statistics tell that it was uet.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 FI_UET_STATS=exit
# timeout makes a process group, with which also what the block left in the background ends.
timeout 100 bash -e -o pipefail block >output 2>&1 &
group=$!
trap 'kill -- "-$group" 2>/dev/null || true; rm -rf "$scratch"' EXIT
status=0
wait "$group" || status=$?
cat output
[[ "$status" -eq 0 ]] || exit "$status"
received="$(awk '$1 == "pds_packets_received" { n += $2 } END { print n + 0 }' output)"
[[ "$received" -gt 0 ]] || {
  echo "no packet went over uet"
  exit 1
}
