#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The patches of contrib/: well formed, with the base that they were made for, the numbers of our own
# header, and, where VARIABLE names a clone of the project, its newest commit and that base take them.
# Use: patch_test.sh SOURCE_TREE PROJECT VARIABLE. Status 77: nothing to apply it to.
set -euo pipefail
tree="$1" project="$2" source="${!3:-}" variable="$3"
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
command -v git >/dev/null || {
  echo "SKIPPED: git is not installed"
  exit 77
}
shopt -s nullglob
patches=("$tree/contrib/$project"/*.patch)
[[ ${#patches[@]} -gt 0 ]] || fail "contrib/$project has no patch"
bases=()
for patch in "${patches[@]}"; do
  base="$(sed -n 's/^Base: \([0-9a-f]\{40\}\) .*/\1/p' "$patch")"
  [[ -n "$base" ]] || fail "$patch does not name the commit that it was made for"
  grep -q '^Project: https://' "$patch" || fail "$patch does not name its project"
  # git refuses hunks whose numbers of lines are wrong.
  git apply --numstat "$patch" >/dev/null || fail "$patch is damaged"
  number="$(sed -n 's/^+.*define FI_PROTO_UET \(0x[0-9a-fA-F]*\).*/\1/p' "$patch")"
  ours="$(sed -n 's/^#define FI_PROTO_UET (\(0x[0-9a-fA-F]*\)U)/\1/p' "$tree/include/uet/fi_ext_uet.h")"
  [[ -z "$number" || "$number" == "$ours" ]] || fail "$patch says FI_PROTO_UET $number, our header $ours"
  bases+=("$base")
done
[[ -n "$source" ]] || {
  echo "SKIPPED: $variable names no clone of the project; the format of its patches is right"
  exit 77
}
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
for i in "${!patches[@]}"; do
  for commit in "${bases[i]}" HEAD; do
    git -C "$source" cat-file -e "$commit^{commit}" 2>/dev/null || fail "$source lacks the commit $commit"
    mkdir "$scratch/$commit"
    # The files that the patch changes, as that commit has them.
    git apply --numstat "${patches[i]}" | cut -f3 | xargs git -C "$source" archive "$commit" | tar -x -C "$scratch/$commit"
    (cd "$scratch/$commit" && GIT_CEILING_DIRECTORIES="$scratch" git apply --whitespace=nowarn "${patches[i]}") ||
      fail "${patches[i]} does not fit $commit"
    echo "${patches[i]##*/} fits $commit"
    rm -rf "${scratch:?}/$commit"
  done
done
