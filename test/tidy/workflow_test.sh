#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The workflow for a public forge is valid YAML, and its jobs run each stage of scripts/check and
# scripts that are there. Use: workflow_test.sh SOURCE_TREE. Status 77: not tested, and why.
set -euo pipefail
cd "$1"
workflow=.github/workflows/ci.yml
if ! command -v yamllint >/dev/null; then
  echo "SKIPPED: yamllint is not there (Debian: apt-get install yamllint)"
  exit 77
fi
yamllint --strict -d '{extends: default, rules: {line-length: {max: 140}}}' "$workflow"
stages="$(sed -n 's/^stages_table=(\(.*\))$/\1/p' scripts/check | grep -oE '"[a-z]+' | tr -d '"' | sort)"
matrix="$(sed -n 's/^ *stage: \[\(.*\)\]$/\1/p' "$workflow" | tr ',' '\n' | tr -d ' ' | sort)"
if [[ -z "$stages" || "$stages" != "$matrix" ]]; then
  printf 'stages of scripts/check:\n%s\nstages of %s:\n%s\n' "$stages" "$workflow" "$matrix"
  exit 1
fi
while read -r script; do
  [[ -x $script ]] || { echo "$workflow runs $script, which is not there"; exit 1; }
done < <(grep -oE "scripts/[a-z_]+" "$workflow" | sort -u)
