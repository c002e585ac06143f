#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# scripts/stages.sh with a clock of its own: which stages run, in which order, what is named.
# Use: stages_test.sh SOURCE
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$1/scripts/common.sh"
# shellcheck source=scripts/stages.sh
source "$1/scripts/stages.sh"
cd "$scratch"

clock=1000
stages_now() { echo "$clock"; }
# Runs functions, which are no programs; the clock is set by what a stage is told to take.
timeout() {
  shift 2
  "$@"
}
ran=""
declare -A takes=() ends=()
stage() {
  ran+="$1 "
  clock=$((clock + takes[$1]))
  return "${ends[$1]:-0}"
}
stage_command=(stage)
stages_directory=state

# run ELAPSED [STAGE...]: a run that begins after so many seconds.
run() {
  stages_begin=$((clock - $1))
  shift
  stages_left_out=()
  stages_failed=()
  stages_expected_s=0
  stages_taken_s=0
  ran=""
  run_stages "$@" >/dev/null
}
# expect WHAT IS WANTED
expect() {
  [[ "$2" == "$3" ]] || fail "$1: '$2' instead of '$3'" "look at scripts/stages.sh"
}

say "Stages"
first=""
stages_table=("one 600" "two 1200" "three 1200")
takes=([one]=600 [two]=1200 [three]=1200)

run 600
expect "all that there is time for" "$ran" "one two three "
expect "none is left out" "${stages_left_out[*]}" ""
expect "the times are kept" "$(sort state/times | tr '\n' ' ')" "one 600 three 1200 two 1200 "

run 3000 # one ends at 3600, two would at 4800, three at 6000
expect "no stage that would end after the limit" "$ran" "one two "
expect "it is named" "${stages_left_out[*]}" "three"

run 3000
expect "what was left out goes first" "$ran" "three one "
expect "and the next is named" "${stages_left_out[*]}" "two"

ends=([two]=1)
run 0
expect "a failure ends no other stage" "$ran" "two one three "
expect "it is named" "${stages_failed[*]}" "two"

ends=([one]=124) # what timeout says of a stage that it has ended
run 0
expect "a stage that is not finished is no failure" "${stages_failed[*]}" ""
expect "but left out" "${stages_left_out[*]}" "one"

ends=()
run 0 two
expect "one alone" "$ran" "two "

# A clean checkout each time, and time for one stage of three.
takes=([one]=600 [two]=1200 [three]=1200)
stages_in_turn=(two three)
for stages_turn in 0 1 2 3; do
  rm -r state
  run 2400
  first+="$ran"
done
expect "stages take turns" "$first" "one two one three one two one three "
stages_in_turn=()

# On a machine of a third of the speed, of which nothing is known yet.
rm -r state
ends=()
takes=([one]=1800 [two]=3600 [three]=3600)
run 0
expect "slowness of the first stages counts for others" "$ran" "one "
expect "those are named" "${stages_left_out[*]}" "two three"
note "passed"
