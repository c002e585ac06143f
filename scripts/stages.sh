# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Runs the stages of scripts/check --ci within a limit of time. Sourced after common.sh.
#
# A stage is left out if it would end too late by the time that it last took: here, which
# $stages_directory/times says, or else on the machine of the table (stages_table). Where the stages
# that have run took longer than the table says, so will the others. Stages that were left out are
# named at the end, are no failure, and go first in the next run ($stages_directory/left-out).
#
# A clean checkout remembers nothing. The stages of $stages_in_turn, which take too long together,
# therefore go last, each time in another order: $stages_turn says which of them begins.

stage_command=() # runs the stage that is its last argument
stages_table=() # "NAME SECONDS", in the order of the run
stages_in_turn=() # names of stages of the table
stages_turn=0 # a number that differs from run to run
stages_directory=build/ci
stages_begin="${UET_CI_BEGIN:-$(date +%s)}" # seconds since 1970: what ran before counts, too
stages_last_end_s=4800                      # no stage begins that would end later
stages_kill_s=5220                          # a stage that still runs then is ended
stages_left_out=()
stages_failed=()
stages_expected_s=0 # of the stages that have run, by the table
stages_taken_s=0    # what they took

# Replaced by the test of this file.
stages_now() { date +%s; }

# Sets expected_s to what the stage NAME will take.
expect_stage() {
  local name="$1" line
  expected_s="$(awk -v name="$name" '$1 == name { print $2 }' "$stages_directory/times" 2>/dev/null)" || true
  [[ -z $expected_s ]] || return 0
  for line in "${stages_table[@]}"; do
    [[ $line != "$name "* ]] || expected_s="${line#* }"
  done
  if [[ $stages_taken_s -gt $stages_expected_s ]]; then
    expected_s=$((expected_s * stages_taken_s / stages_expected_s))
  fi
}

# Prints the names of the stages: of the last run's left-out stages, of the table, of the turn.
stages_in_order() {
  local line names=() name i
  for line in "${stages_table[@]}"; do
    name="${line% *}"
    [[ " ${stages_in_turn[*]} " == *" $name "* ]] || names+=("$name")
  done
  for i in "${!stages_in_turn[@]}"; do
    names+=("${stages_in_turn[$(((i + stages_turn) % ${#stages_in_turn[@]}))]}")
  done
  for name in "${names[@]}"; do
    if grep -qsx "$name" "$stages_directory/left-out"; then echo "$name"; fi
  done
  for name in "${names[@]}"; do
    if ! grep -qsx "$name" "$stages_directory/left-out"; then echo "$name"; fi
  done
}

# keep_time NAME [SECONDS]: what the stage took; without SECONDS that is forgotten.
keep_time() {
  {
    grep -sv "^$1 " "$stages_directory/times" || true
    [[ $# -eq 1 ]] || echo "$1 $2"
  } >"$stages_directory/times.new"
  mv "$stages_directory/times.new" "$stages_directory/times"
}

# run_stage NAME COMMAND...: runs it, or leaves it out; never fails.
run_stage() {
  local name="$1" begin spent_s expected_s status=0 line
  shift
  expect_stage "$name"
  begin="$(stages_now)"
  if [[ $((begin - stages_begin + expected_s)) -gt $stages_last_end_s ]]; then
    stages_left_out+=("$name")
    keep_time "$name" # one slow run does not decide for ever
    note "left out: $name takes $expected_s s, $((begin - stages_begin)) s have gone by"
    return 0
  fi
  timeout --kill-after=10 $((stages_kill_s + stages_begin - begin)) "$@" || status=$?
  spent_s=$(($(stages_now) - begin))
  note "$name: $spent_s s"
  if [[ $status -eq 124 || $status -eq 137 ]]; then
    stages_left_out+=("$name")
    note "not finished: $name, after $spent_s s"
    return 0
  fi
  [[ $status -eq 0 ]] || stages_failed+=("$name")
  for line in "${stages_table[@]}"; do
    [[ $line != "$name "* ]] || stages_expected_s=$((stages_expected_s + ${line#* }))
  done
  stages_taken_s=$((stages_taken_s + spent_s))
  keep_time "$name" "$spent_s"
}

# run_stages [NAME...]: all of the table, or these.
run_stages() {
  local name names chosen=" $* "
  mkdir -p "$stages_directory"
  mapfile -t names < <(stages_in_order)
  for name in "${names[@]}"; do
    [[ $# -eq 0 || $chosen == *" $name "* ]] || continue
    say "Stage $name"
    run_stage "$name" "${stage_command[@]}" "$name"
  done
  printf '%s\n' "${stages_left_out[@]}" >"$stages_directory/left-out"
}
