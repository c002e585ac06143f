#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The Containerfile: known instructions, and scripts, presets, options, packages and programs that are
# in the tree. Building the image needs a registry; this does not.
# Use: container_test.sh SOURCE_TREE
set -euo pipefail
cd "$1"
file=contrib/container/Containerfile
fail() {
  echo "FAILED: $file: $*" >&2
  exit 1
}
# Lines that continue are one.
text="$(sed -e '/^#/d' -e ':a' -e '/\\$/{N;s/\\\n//;ba' -e '}' "$file")"
while read -r instruction _; do
  [[ -z "$instruction" || " ARG FROM COPY WORKDIR RUN ENV CMD " == *" $instruction "* ]] || fail "unknown instruction $instruction"
done <<<"$text"
while read -r stage; do
  grep -qE "^FROM .* AS $stage$" <<<"$text" || fail "no stage $stage"
done < <(grep -oE -- '--from=[a-z]+' <<<"$text" | cut -d= -f2)
while read -r script; do
  [[ -x "$script" ]] || fail "runs $script, which is not there"
done < <(grep -oE 'scripts/[a-z_0-9]+' <<<"$text" | sort -u)
grep -q -- '--packages' scripts/test || fail "scripts/test has no --packages"
while read -r preset; do
  grep -q "\"name\": \"$preset\"" CMakePresets.json || fail "no preset $preset"
done < <(grep -oE -- '--preset [a-z-]+' <<<"$text" | cut -d' ' -f2)
while read -r option; do
  grep -qE "^option\($option " CMakeLists.txt || fail "CMakeLists.txt has no option $option"
done < <(grep -oE 'UET_[A-Z_]+' <<<"$text" | sort -u)
# cpack finds with them what a Debian package depends on; a base image has neither.
installed="$(bash -c 'source scripts/common.sh && echo "${build_packages[*]} ${test_packages[*]}"')"
for needed in dpkg-dev file; do
  [[ " $installed " == *" $needed "* ]] || fail "scripts/test --packages does not install $needed"
done
package="$(sed -n 's/^set(CPACK_PACKAGE_NAME \(.*\))$/\1/p' cmake/Package.cmake)"
while read -r named; do
  [[ "$named" == "$package" ]] || fail "package $named; cmake/Package.cmake makes $package"
done < <(grep -oE '/[a-z-]+_\*\.deb' <<<"$text" | tr -d / | cut -d_ -f1)
program="$(sed -n 's/^CMD \["\(.*\)"\]$/\1/p' <<<"$text")"
[[ -d "tools/$program" ]] || fail "CMD: no program $program"
echo "the Containerfile names what is there"
