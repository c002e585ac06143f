#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Runs the block of docs/debugging.md below "### Make a program hang" as it stands, and demands that each sentence that
# the page quotes from the dump is in the output, and that the log warns once of the peer. Ends with 77, and says why, if one of PROGRAMs is not there.
# Use: debugging_test.sh REPOSITORY TOOLS PROGRAM...    with FI_PROVIDER_PATH; TOOLS: where uet_trace is
set -euo pipefail

repository="$1" tools="$2"
shift 2
for program in "$@"; do
  command -v "$program" >/dev/null || {
    echo "skipped: $program is not installed"
    exit 77
  }
done
if [[ -z "${UET_DEBUGGING_NETWORK:-}" ]] && unshare --net true 2>/dev/null; then
  export UET_DEBUGGING_NETWORK=own
  exec unshare --net "$0" "$repository" "$tools" "$@"
fi
[[ "${UET_DEBUGGING_NETWORK:-}" != own ]] || ip link set lo up

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export PATH="$tools:$PATH" XDG_RUNTIME_DIR="$scratch"
section() { # the code blocks below a heading
  awk -v heading="### $1" '
    /^#/ && !inside { here = ($0 == heading) }
    /^```/ { inside = !inside; next }
    here && inside { print }' "$repository/docs/debugging.md"
}
section "Make a program hang" >block
section "The dump in words" >expected
[[ -s block && -s expected ]] || {
  echo "docs/debugging.md lacks one of the two blocks"
  exit 1
}
cat block
FI_LOG_LEVEL=warn FI_LOG_PROV=uet timeout 100 bash block >output 2>&1 &
group=$!
trap 'kill -- "-$group" 2>/dev/null || true; rm -rf "$scratch"' EXIT
wait "$group" || true # both programs end with an error
cat output
# Numbers differ from run to run: digits of the page stand for any digits.
while IFS= read -r line; do
  pattern="$(sed -E 's/[][().*+?|^$]/\\&/g; s/0x[0-9a-f]+/@HEX@/g; s/[0-9]+/[0-9]+/g; s/@HEX@/0x[0-9a-f]+/g' <<<"$line")"
  grep -Eq -- "$pattern" output || {
    echo "the output lacks: $line"
    exit 1
  }
done <expected
warnings="$(grep -c "peer .* does not answer and is given up; see whether its process runs" output || true)"
[[ "$warnings" == 1 ]] || {
  echo "$warnings warnings of a peer that is given up, not 1"
  exit 1
}
