#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# uet_run on one host: the command line, how a job ends, and that no process outlives it.
# Use: run_tool_test.sh UET_RUN
# shellcheck disable=SC2016 # the shells of ranks expand what stands in single quotes
set -euo pipefail
run="$1"
scratch="$(mktemp -d)"
mark="300.$$"
# Processes of this test's ranks: each sleeps for as many seconds as the mark says; the pattern does not find grep.
survivors() {
  grep -al "300[.]$$" /proc/[0-9]*/cmdline 2>/dev/null | tr -dc '0-9\n' || true
}
clean_up() {
  local pid
  for pid in $(survivors); do kill -KILL "$pid" 2>/dev/null || true; done
  rm -rf "$scratch"
}
trap clean_up EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
# gives TEXT COMMAND...: the command succeeds and prints TEXT.
gives() {
  local text="$1" output
  shift
  output="$("$@" 2>&1)" || fail "status $?: $*: $output"
  [[ "$output" == "$text" ]] || fail "'$output' instead of '$text': $*"
}
# ends STATUS WORDS COMMAND...: the command ends with STATUS, and its output has these words.
ends() {
  local wanted="$1" words="$2" output status=0
  shift 2
  output="$("$@" 2>&1)" || status=$?
  [[ "$status" == "$wanted" ]] || fail "status $status instead of $wanted: $*: $output"
  [[ "$output" == *"$words"* ]] || fail "'$output' lacks '$words': $*"
}
# A rank: tells its process, leaves its mark, and a descendant in a session of its own that ignores SIGTERM.
tree="trap '' TERM; setsid sleep $mark & echo up \$\$; sleep $mark; true"
none_left() {
  local i
  for ((i = 0; i < 100; ++i)); do
    [[ -n "$(survivors)" ]] || return 0
    sleep 0.1
  done
  fail "$1: these processes are left: $(survivors | xargs ps -o pid,ppid,stat,args -p)"
}
# Starts $tree at two ranks in the background and waits until both say that they are up.
start_tree() {
  : >"$scratch/out" # here, as the background process may do it late: the last ranks would count
  setsid "$run" -n 2 sh -c "$tree" >"$scratch/out" 2>"$scratch/err" &
  job=$!
  local i
  for ((i = 0; i < 300; ++i)); do
    [[ "$(grep -c up "$scratch/out")" != 2 ]] || return 0
    sleep 0.1
  done
  fail "the ranks do not start: $(cat "$scratch/err")"
}

# The command line: what follows the program is the program's, unread.
gives "-n --tag" "$run" -n 1 echo "-n --tag"
gives "[a,b] -x 7  -- --help" "$run" echo "[a,b]" -x 7 "" -- --help
gives "b d" "$run" -x A=b --export=C=d sh -c 'echo $A $C'
gives "e" "$run" -xA=e -- sh -c 'echo $A'
gives "[0] 0 of 1" "$run" --tag sh -c 'echo $UET_RANK of $UET_SIZE'
gives "4711" "$run" --job-id 4711 sh -c 'echo $UET_JOB_ID'
gives "$(printf '0\n1\n2')" sh -c "'$run' -n 3 sh -c 'echo \$UET_RANK' | sort"
gives "$scratch" sh -c "cd '$scratch' && '$run' pwd"
[[ "$("$run" printenv UET_JOB_ID)" != "$("$run" printenv UET_JOB_ID)" ]] || fail "two jobs, one JobID"
ends 2 "PROGRAM" "$run" -n 2
ends 2 "--nonsense" "$run" --nonsense echo
ends 2 "0" "$run" -n 0 echo
ends 2 "none" "$run" --hosts "$scratch/none" echo
printf 'a\nb slots=x\n' >"$scratch/bad"
ends 2 "line 2" "$run" --hosts "$scratch/bad" echo
ends 0 "PROGRAM" "$run" --help
ends 126 "no order" sh -c "'$run' --agent </dev/null"

# How a job ends.
ends 127 "cannot start /no/such" "$run" -n 2 /no/such
ends 7 "rank 1 on localhost has ended with status 7" "$run" -n 3 sh -c '
  [ $UET_RANK = 1 ] || exec sleep 300
  echo my last words >&2; exit 7'
ends 139 "by signal 11" "$run" sh -c 'kill -SEGV $$'
# A process that keeps the rank's output open when its agent is gone delays nothing.
ends 137 "  behind" timeout 20 "$run" sh -c "echo behind >&2; setsid sleep $mark &
  sleep 0.2; kill -KILL \$PPID; exec sleep $mark"
for pid in $(survivors); do kill -KILL "$pid" || true; done

# Launchers: a template, with and without marks, and srun, which is found by PATH.
printf '#!/bin/sh\necho "$*" >>%s/calls\nshift\nexec sh -c "$*"\n' "$scratch" >"$scratch/remote"
chmod +x "$scratch/remote"
printf 'north slots=2\nsouth\n' >"$scratch/hosts"
gives "$(printf '0\n1\n2')" sh -c "'$run' -n 3 --hosts '$scratch/hosts' --master 127.0.0.1 \
  --launcher '$scratch/remote' sh -c 'echo \$UET_RANK' | sort"
[[ "$(cut -d' ' -f1 "$scratch/calls" | sort | tr '\n' ' ')" == "north north south " ]] ||
  fail "hosts of the launcher: $(cat "$scratch/calls")"
gives "1" "$run" --launcher 'sh -c {command} {host}' --master 127.0.0.1 printenv UET_SIZE
ends 5 "rank 0 on north has ended with status 5" "$run" --hosts "$scratch/hosts" --master 127.0.0.1 \
  --launcher "$scratch/remote {host} {command}" sh -c 'exit 5'
printf '#!/bin/sh\necho "$*" >>%s/srun-calls\nwhile [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"\n' \
  "$scratch" >"$scratch/srun"
chmod +x "$scratch/srun"
gives "0" env SLURM_JOB_ID=5 PATH="$scratch:$PATH" "$run" --hosts "$scratch/hosts" --master 127.0.0.1 \
  printenv UET_RANK
grep -q -- "--nodelist=north .*uet_run --agent$" "$scratch/srun-calls" ||
  fail "srun was called so: $(cat "$scratch/srun-calls")"
printf '#!/bin/sh\nsleep 1\nexit 4\n' >"$scratch/deaf"
chmod +x "$scratch/deaf"
# A launcher that reads no order blocks nothing, however long the order is.
ends 4 "with status 4" timeout 20 "$run" -x "LONG=$(head -c 100000 /dev/zero | tr '\0' x)" \
  --launcher "$scratch/deaf" true

# Ctrl-C, a terminal that goes, and even SIGKILL: nothing stays, not even what ignores SIGTERM.
for signal in INT TERM HUP KILL; do
  start_tree
  kill -"$signal" "$job"
  status=0
  wait "$job" 2>/dev/null || status=$?
  case "$signal" in
    INT) [[ "$status" == 130 ]] || fail "status $status after Ctrl-C" ;;
    TERM) [[ "$status" == 143 ]] || fail "status $status after SIGTERM" ;;
  esac
  none_left "SIG$signal"
done
# A rank that is killed from outside takes the job along.
start_tree
read -r _ rank <"$scratch/out"
kill -KILL "$rank"
status=0
wait "$job" || status=$?
[[ "$status" == 137 ]] || fail "status $status after the death of a rank"
none_left "a rank that is killed"
echo "uet_run: all is well"
