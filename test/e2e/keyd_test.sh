#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Runs the blocks of docs/keys.md below their headings, in order: secret, agent, the three scripts of Slurm, mpirun with
# the provider. Only directories differ from the document. Ends with 77, and says why, if it cannot.
# Use: keyd_test.sh REPOSITORY UET_KEYD UET_KEYS PROGRAM.c    with FI_PROVIDER_PATH
set -euo pipefail
repository="$1" keyd="$2" keys="$3" source="$4"
for program in mpicc mpirun awk; do
  command -v "$program" >/dev/null || {
    echo "skipped: $program is not installed"
    exit 77
  }
done

scratch="$(mktemp -d)"
agent=""
finish() {
  [[ -z "$agent" ]] || kill "$agent" 2>/dev/null || true
  rm -rf "$scratch"
}
trap finish EXIT
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
mkdir "$scratch/bin" "$scratch/etc"
ln -s "$keyd" "$scratch/bin/uet_keyd"
export PATH="$scratch/bin:$PATH" UET_KEYD_RUN_DIR="$scratch/run" UET_KEYD_STATE_DIR="$scratch/state"
cd "$scratch"

# The block below a heading, with this test's directories.
block() {
  awk -v heading="### $1" '
    /^#/ && !inside { here = ($0 == heading) }
    /^```/ { inside = !inside; next }
    here && inside { print }' "$repository/docs/keys.md" | sed "s#/etc/uet#$scratch/etc#g" >"$scratch/block"
  [[ -s "$scratch/block" ]] || fail "docs/keys.md has no block below '### $1'"
  echo "--- $1"
  cat "$scratch/block"
}
# True once the agent answers.
answers() { for _ in {1..200}; do "$keyd" begin 1 2>/dev/null && return 0; sleep 0.05; done; return 1; }

block "A secret for all hosts"
bash -e "$scratch/block"
block "An agent on each host"
# The agent is to end with this test, so that it runs in this shell.
# shellcheck source=/dev/null
. "$scratch/block"
agent=$!
answers || fail "no agent"

block "Slurm"
bash -e "$scratch/block"
SLURM_JOB_UID="$(id -u)"
export SLURM_JOB_ID=42 SLURM_JOB_UID
./prolog
environment="$(./task_prolog)"
echo "$environment"
grep -qx "export FI_UET_TSS=require" <<<"$environment" || fail "no FI_UET_TSS"
file="$(sed -n 's/^export FI_UET_TSS_KEYS=//p' <<<"$environment")"
[[ "$(stat -c '%a %u' "$file")" == "600 $(id -u)" ]] || fail "mode and owner of $file"
"$keys" show "$file"
[[ "$("$keyd" keys 42 | "$keys" show fd:0)" == "$("$keys" show "$file")" ]] || fail "the agent tells other keys"
./epilog
[[ ! -e "$file" ]] || fail "the epilog leaves keys behind"
if "$keyd" env 42 2>error; then fail "a job that has ended has an environment"; fi
grep -q "no such job" error || fail "$(cat error)"

# shellcheck disable=SC2016  # the shell that is started expands it
[[ "$("$keyd" exec 43 sh -c 'echo "$0 $*"' -x --user y)" == "-x --user y" ]] || fail "arguments of the program"
"$keyd" end 43

block "mpirun"
mpicc -o mpi_ring "$source"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 FI_UET_STATS=exit FI_UET_LOCAL=off
export OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include=uet OMPI_MCA_rmaps_base_oversubscribe=1
timeout 100 bash -e "$scratch/block" >output 2>&1 || { cat output; fail "the block fails"; }
cat output
# Each rank has sealed and opened packets; none came in clear.
awk '$1 == "tss_in_auth" && $2 > 0 { ranks++ } $1 == "tss_in_rx_encryption_bypass" { clear += $2 }
  END { exit !(ranks == 2 && clear == 0) }' output || fail "the ranks have not sealed their packets"
if "$keyd" env 4711 2>error; then fail "the job has not ended"; fi
echo "keys for jobs: all is well"
