#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# uet_copy: files and trees both ways, bytes and attributes, refusals with their exit status, and the
# restart of a transfer that was killed. Runs in a network of its own (own_network).
# Use: copy_tool_test.sh UET_COPY FAKE_CUDA_DIRECTORY
set -euo pipefail
copy="$1" cuda="$2"
scratch="$(mktemp -d)"
server=""
finish() {
  [[ -z "$server" ]] || kill "$server" 2>/dev/null || true
  rm -rf "$scratch"
}
trap finish EXIT
export FI_UET_LOCAL=off FI_PROVIDER=uet
host=127.0.0.1

fail() {
  echo "FAILED: $*" >&2
  cat "$scratch/log" >&2
  exit 1
}
# serve DIRECTORY [OPTION...]: starts the server and waits for its first line.
serve() {
  : >"$scratch/log"
  "$copy" --listen "$host" --serve "$@" >"$scratch/log" 2>&1 &
  server=$!
  for _ in $(seq 500); do
    if grep -q '^serving' "$scratch/log"; then return; fi
    sleep 0.02
  done
  fail "the server did not start"
}
end_server() {
  kill "$server"
  wait "$server" || fail "the server ended with status $?"
  server=""
}
run() { timeout 60 "$copy" "$@" >"$scratch/out" 2>&1; }
# refused STATUS WORDS ARGUMENT...: the exit status and a message with these words.
refused() {
  local expected="$1" words="$2" status=0
  shift 2
  run "$@" || status=$?
  [[ "$status" == "$expected" ]] || fail "status $status, not $expected: $* ($(cat "$scratch/out"))"
  grep -qF -- "$words" "$scratch/out" || fail "'$(cat "$scratch/out")' lacks '$words'"
}
same() { cmp "$1" "$2" || fail "$2 differs"; }
parts() { find "$scratch/served" "$scratch/here" -name '.uet-part.*'; }
# json NAME: the number of that name in the report.
json() { sed -n "s/.*\"$1\":\"*\([0-9a-f]*\).*/\1/p" "$scratch/out"; }

mkdir "$scratch/served" "$scratch/here"
cd "$scratch/here"
serve "$scratch/served"

# Sizes around a page, the share of a slot below which files are packed, a slot, and more slots.
for size in 0 4096 261121 1044481 9000001; do
  head -c "$size" /dev/urandom >"f$size"
  chmod 640 "f$size"
  touch -d '2020-02-02 02:02:02.5' "f$size"
  run "f$size" "$host:to$size" --verify || fail "sending $size bytes: $(cat "$scratch/out")"
  same "f$size" "$scratch/served/to$size"
  [[ "$(stat -c '%a %Y' "$scratch/served/to$size")" == "$(stat -c '%a %Y' "f$size")" ]] || fail "mode or time of $size"
  run "$host:to$size" "back" --streams 2 --sync --slot-mib 2 || fail "fetching $size bytes: $(cat "$scratch/out")"
  same "f$size" back
done
run f4096 "$host:." || fail "into a directory"
same f4096 "$scratch/served/f4096"

# A tree: deep, empty, many, long; a link is left out, and said so.
mkdir -p tree/a/b/c tree/empty
for i in $(seq 400); do echo "$i" >"tree/a/b/$i"; done
cp f9000001 tree/a/b/c/long
ln -s /etc/passwd tree/link
chmod 555 tree/a/b
run -r tree "$host:tree" --streams 3 --verify --json || fail "sending a tree: $(cat "$scratch/out")"
[[ "$(json files)" == 401 && "$(json left_out)" == 1 ]] || fail "report: $(cat "$scratch/out")"
run -r "$host:tree" tree2 --streams 3 || fail "fetching a tree: $(cat "$scratch/out")"
rm tree/link
diff -r tree "$scratch/served/tree" || fail "the tree that was sent differs"
diff -r tree tree2 || fail "the tree that was fetched differs"
[[ -d tree2/empty && "$(stat -c %a tree2/a/b)" == 555 ]] || fail "directories of the tree"
chmod -R u+w tree tree2 "$scratch/served"

# Through the memory of a device: there, there and back, from a file of this host. The stand-in for
# CUDA ends a process that touches the device's addresses.
if ldconfig -p | grep -q libcuda.so.1; then
  echo "a CUDA driver is there: the stand-in goes before it"
else
  refused 1 "--gpu: no CUDA driver" "$host:to4096" --gpu 0
fi
export LD_LIBRARY_PATH="$cuda"
printf 123456789 >"$scratch/served/digits"
run "$host:digits" --gpu 0 --verify --json || fail "into a device: $(cat "$scratch/out")"
[[ "$(json crc32c)" == e3069283 && "$(json bytes)" == 9 && "$(json files)" == 1 ]] || fail "report: $(cat "$scratch/out")"
for size in 4096 1044481 9000001; do
  run "$host:to$size" "$host:via$size" --gpu 0 --verify --streams 2 || fail "there and back: $(cat "$scratch/out")"
  same "f$size" "$scratch/served/via$size"
  [[ "$(stat -c '%a %Y' "$scratch/served/via$size")" == "$(stat -c '%a %Y' "f$size")" ]] || fail "mode or time of via$size"
  [[ "$(grep -c "in memory of CUDA device 0, CRC-32C" "$scratch/out")" == 2 ]] || fail "report: $(cat "$scratch/out")"
done
run f9000001 "$host:." --gpu 0 --sync || fail "from a file: $(cat "$scratch/out")"
same f9000001 "$scratch/served/f9000001"
truncate -s 2G "$scratch/served/huge"
refused 5 "CUDA device 0" "$host:huge" --gpu 0
rm "$scratch/served/huge"
refused 1 "no CUDA device 7" "$host:to4096" --gpu 7
refused 3 "none: No such file or directory" "$host:none" --gpu 0
refused 3 "none: No such file or directory" none "$host:new" --gpu 0
refused 2 "FROM is HOST:PATH" "$host:to4096" here --gpu 0
refused 2 "see --help" -r "$host:." --gpu 0
unset LD_LIBRARY_PATH

# Refusals: nothing comes into being.
ln -s /etc "$scratch/served/etc"
ln -s tree/a "$scratch/served/within"
refused 3 "none: No such file or directory" "$host:none" new
refused 3 "No such file or directory" none "$host:new"
refused 7 "leaves the directory that is served" "$host:../here/f4096" new
refused 7 "leaves the directory that is served" "$host:/etc/passwd" new
refused 7 "leaves the directory that is served" "$host:etc/passwd" new
refused 7 "leaves the directory that is served" f4096 "$host:etc/new"
refused 7 "leaves the directory that is served" f4096 "$host:../new"
refused 1 "is a directory; use -r" "$host:tree" new
refused 2 "one of FROM and TO" f4096 new
refused 2 "see --help" f4096
[[ ! -e new && ! -e "$scratch/served/new" && ! -e /etc/new && ! -e "$scratch/new" ]] || fail "a refused file is there"
run "$host:within/b/7" new || fail "a link that stays within: $(cat "$scratch/out")"
rm new

# A client that is killed leaves no file that looks whole, and the next continues.
head -c 200000000 /dev/zero | tr '\0' 'x' >big
printf 'begin' | dd of=big conv=notrunc status=none
for _ in 1 2 3; do
  "$copy" big "$host:big" >/dev/null 2>&1 &
  client=$!
  while kill -0 "$client" 2>/dev/null; do
    found="$(find "$scratch/served" -maxdepth 1 -name '.uet-part.*' -size +20M)"
    [[ -z "$found" ]] || break
  done
  kill -9 "$client" 2>/dev/null || true
  wait "$client" 2>/dev/null || true
  [[ -e "$scratch/served/big" ]] || break
  rm "$scratch/served/big"  # it was faster than we
done
[[ -n "$(parts)" && ! -e "$scratch/served/big" ]] || fail "no part of a killed transfer"
# The server notices the death within two periods of keep_alive_ms, and frees the part.
for _ in $(seq 300); do
  if run big "$host:big" --json; then break; fi
  grep -q 'another transfer writes' "$scratch/out" || fail "the restart: $(cat "$scratch/out")"
  sleep 0.1
done
same big "$scratch/served/big"
[[ "$(json resumed_bytes)" -gt 0 && "$(json bytes)" -lt 200000000 ]] || fail "not continued: $(cat "$scratch/out")"
[[ -z "$(parts)" ]] || fail "left over: $(parts)"

# A server that is killed: the client says so, and its part stays for the next time.
"$copy" "$host:big" fetched >"$scratch/out" 2>&1 &
client=$!
while kill -0 "$client" 2>/dev/null; do
  [[ -z "$(find . -maxdepth 1 -name '.uet-part.*' -size +20M)" ]] || break
done
kill -9 "$server" 2>/dev/null
wait "$server" 2>/dev/null || true
status=0
wait "$client" || status=$?
if [[ ! -e fetched ]]; then
  [[ "$status" == 8 ]] || fail "status $status after the death of the server: $(cat "$scratch/out")"
  grep -q 'the connection broke' "$scratch/out" || fail "message: $(cat "$scratch/out")"
fi
refused 8 "is uet_copy --serve running there?" f4096 "$host:new"
serve "$scratch/served" --read-only
run "$host:big" fetched || fail "fetching again: $(cat "$scratch/out")"
same big fetched
refused 4 "only reads" f4096 "$host:new"
end_server

# A full disk and a read-only one need a mount of one's own.
if unshare --mount true 2>/dev/null; then
  mkdir "$scratch/full" "$scratch/fixed"
  unshare --mount bash -ec "mount -t tmpfs -o size=1m none '$scratch/full'
    mount -t tmpfs -o ro none '$scratch/fixed'
    for kind in full fixed; do
      '$copy' --listen $host --serve '$scratch'/\$kind >'$scratch'/log 2>&1 &
      served=\$!
      until grep -q '^serving' '$scratch'/log; do sleep 0.02; done
      for file in f9000001 f4096; do
        status=0
        timeout 60 '$copy' \$file $host:new >>'$scratch'/\$kind.\$file 2>&1 || status=\$?
        echo status \$status >>'$scratch'/\$kind.\$file
      done
      ls -A '$scratch'/\$kind >'$scratch'/\$kind.list
      kill \$served; wait
      : >'$scratch'/log
    done"
  grep -q 'No space left' "$scratch/full.f9000001" || fail "no message of the full disk"
  grep -q 'status 5' "$scratch/full.f9000001" ||
    fail "full disk: $(cat "$scratch/full.f9000001")"
  grep -q 'Read-only' "$scratch/fixed.f4096" || fail "no message of the read-only disk"
  grep -q 'status 4' "$scratch/fixed.f4096" ||
    fail "read-only disk: $(cat "$scratch/fixed.f4096")"
  grep -q 'status 0' "$scratch/full.f4096" || fail "the full disk stays full: $(cat "$scratch/full.f4096")"
  [[ "$(cat "$scratch/full.list")" == new ]] || fail "left over on the full disk: $(cat "$scratch/full.list")"
else
  echo "left out: a full disk (no mount name space can be made here)"
fi
echo "uet_copy: all is well"
