#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# uet_keys: makes a key file, rotates it in place, shows it without secrets (TSS-53, TSS-60).
# Use: keys_tool_test.sh UET_KEYS
set -euo pipefail
keys="$1"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
file="$scratch/keys"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
# refused WORDS COMMAND...: the command fails and its message has these words.
refused() {
  local words="$1" output
  shift
  if output="$("$@" 2>&1)"; then fail "succeeded: $*"; fi
  [[ "$output" == *"$words"* ]] || fail "'$output' lacks '$words'"
}
secrets() { awk '$1 == "key" { print $5 }' "$file"; }

"$keys" new "$file" --sdi 0xabcd --ssi 5 --guard 3
[[ "$(stat -c %a "$file")" == 600 ]] || fail "mode of the file"
[[ "$(secrets)" =~ ^[0-9a-f]{64}$ ]] || fail "no key of 64 digits"
first="$(secrets)"
refused "File exists" "$keys" new "$file" --sdi 1
refused "install it first" "$keys" activate "$file"

# Providers compare the age of the active key with that of their directory (TSS-37).
touch -d '2020-01-01' "$file"
"$keys" rotate "$file"
[[ "$(stat -c %Y "$file")" == "$(date -d '2020-01-01' +%s)" ]] || fail "the active key looks younger than it is"
[[ "$(secrets | sort -u | wc -l)" == 2 ]] || fail "two different keys expected"
grep -qx "active 0" "$file" || fail "the old key is still the active one"
refused "activate it first" "$keys" rotate "$file"
"$keys" activate "$file" --sdi 0xabcd
grep -qx "active 1" "$file" || fail "the new key is active"
[[ "$(stat -c %Y "$file")" -gt "$(date -d '2020-01-02' +%s)" ]] || fail "the new key looks older than it is"
[[ "$(secrets)" != "$first" && "$(secrets | wc -l)" == 1 ]] || fail "the old key is gone"
[[ "$(stat -c %a "$file")" == 600 ]] || fail "mode after the rotation"
[[ ! -e "$file.new" ]] || fail "a file is left over"

listing="$("$keys" show "$file")"
[[ "$listing" == *"fingerprint "* && "$listing" == *"domain 0xabcd"* ]] || fail "listing"
[[ "$listing" != *"$(secrets | cut -c1-16)"* ]] || fail "the listing shows a key"
[[ "$("$keys" show fd:7 7<"$file")" == "$listing" ]] || fail "inherited descriptor"

"$keys" new "$scratch/pdc" --sdi 1 --pdc-only
grep -qx "pdc-only" "$scratch/pdc" || fail "--pdc-only"
[[ "$("$keys" show "$scratch/pdc")" == *"pdc-only"* ]] || fail "pdc-only in the listing"

chmod 640 "$file"
refused "chmod 600" "$keys" show "$file"
refused "No such file" "$keys" show "$scratch/none"
refused "TSS-22" "$keys" new "$scratch/six" --sdi 1 --mode direct --ipv6
[[ ! -e "$scratch/six" ]] || fail "a refused file is left over"
echo "uet_keys: all is well"
