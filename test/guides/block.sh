#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# What the tests of docs/guides share.

# read_block DOCUMENT HEADING FILE: writes the first block below "### HEADING" into FILE. Ends the test without one.
read_block() {
  awk -v heading="### $2" '
    /^#/ && !inside { here = ($0 == heading) }
    /^```/ { inside = !inside; if (!inside && here) exit; next }
    here && inside { print }' "$1" >"$3"
  [[ -s "$3" ]] || {
    echo "$1 has no block below '### $2'"
    exit 1
  }
}

holds() { awk "BEGIN { exit !($1) }"; }
