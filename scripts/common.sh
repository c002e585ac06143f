# shellcheck shell=bash
# shellcheck disable=SC2034  # the variables are read by the scripts that source this file
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# What the scripts share: messages, package installation, the incremental build, and running two
# processes against each other. Sourced, never run; the script that sources it sets -euo pipefail.

repository="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$repository" || exit 1

# Needed to build the provider, the examples and the tests (docs/dependencies.md says why each).
build_packages=(g++ cmake ninja-build pkg-config libfabric-dev libnl-3-dev libnl-route-3-dev libssl-dev
  libpcap-dev libgtest-dev libgmock-dev nlohmann-json3-dev libcli11-dev libncurses-dev libmicrohttpd-dev
  libbenchmark-dev libfabric-bin liburing-dev)
# Programs of others that tests run; a test whose program is not there is skipped and says so.
test_packages=(tshark openmpi-bin libopenmpi-dev python3-mpi4py iproute2 libdpdk-dev
  libxdp-dev libibverbs-dev libbpf-dev clang python3-cryptography-vectors dpkg-dev file rpm yamllint
  nftables)
# The same for scripts/test --full.
full_test_packages=(netpipe-openmpi hpcc)

step_number=0
step_text="starting"

# say TEXT: begins a numbered step.
say() {
  step_number=$((step_number + 1))
  step_text="$1"
  printf '\n== %d. %s\n' "$step_number" "$1"
}

note() { printf '   %s\n' "$*"; }

# fail WHAT ADVICE: ends the script; says what went wrong and what to do next.
fail() {
  trap - ERR
  printf '\nFAILED in step %d (%s)\n  What happened: %s\n  What to do:    %s\n' \
    "$step_number" "$step_text" "$1" "$2" >&2
  exit 1
}

trap 'fail "a command ended with status $? at ${BASH_SOURCE[0]##*/}:$LINENO" \
  "read the lines above; then run the script again, finished steps are not repeated"' ERR
set -E

# ensure_packages NAME...: installs the Debian packages that are missing, and only those.
ensure_packages() {
  local missing=() name status
  command -v dpkg-query >/dev/null || fail "this is not a Debian system" \
    "install the equivalents of: $* ; then follow 'Building by hand' in README.md"
  for name in "$@"; do
    status="$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null || true)"
    [[ "$status" == installed ]] || missing+=("$name")
  done
  if [[ ${#missing[@]} -eq 0 ]]; then
    note "all $# packages are there"
    return
  fi
  [[ "$(id -u)" -eq 0 ]] || fail "packages are missing: ${missing[*]}" \
    "as root: apt-get install --no-install-recommends ${missing[*]}"
  note "installing ${missing[*]}"
  local log
  log="$(mktemp)"
  if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y \
    --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    fail "apt-get could not install ${missing[*]}" \
      "check the network and /etc/apt/sources.list (Debian 12, main); the whole log is $log"
  fi
  rm -f "$log"
}

# wish_packages NAME...: the same for packages that are not needed; who may not install goes without.
wish_packages() {
  local name status missing=()
  for name in "$@"; do
    status="$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null || true)"
    [[ "$status" == installed ]] || missing+=("$name")
  done
  if [[ ${#missing[@]} -gt 0 && "$(id -u)" -ne 0 ]]; then
    note "not installed, what runs them is skipped: ${missing[*]}"
  else
    ensure_packages "$@"
  fi
}

# build PRESET [TARGET...]: configures build/PRESET once, then builds what is out of date. UET_WERROR
# of the environment, ON or OFF, is the option of that name where a build is configured.
build() {
  local preset="$1" directory="build/$1" targets=()
  shift
  [[ $# -eq 0 ]] || targets=(--target "$@")
  if [[ ! -f "$directory/build.ninja" ]]; then
    cmake --preset "$preset" ${UET_WERROR:+"-DUET_WERROR=$UET_WERROR"} || fail "configuring $directory failed" \
      "the message above names what is missing; after mending it: rm -rf $directory and run again"
  fi
  cmake --build "$directory" --parallel "$(nproc)" "${targets[@]}" ||
    fail "the build in $directory failed" "mend the first error above and run again; only what changed is rebuilt"
}

# Processes in the background are ended with the script, whatever way it ends.
background_pids=()
scratch="$(mktemp -d)"
clean_up() {
  local pid
  for pid in "${background_pids[@]}"; do
    kill "$pid" 2>/dev/null || true
  done
  rm -rf "$scratch"
}
trap clean_up EXIT

# port_listens PORT: a process of this host listens on that TCP port. Reads the kernel's table, since
# a trial connection would be taken for the client by a server that accepts only one.
port_listens() {
  local hex
  hex="$(printf '%04X' "$1")"
  grep -qsE "^ *[0-9]+: [0-9A-F]+:$hex [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6
}

# Sets free_port to a TCP port on which no process listens.
choose_free_port() {
  free_port=$((20000 + RANDOM % 10000))
  while port_listens "$free_port"; do
    free_port=$((20000 + RANDOM % 10000))
  done
}

# run_pair PORT LIMIT_S: starts server_command, waits until it listens on PORT, runs client_command,
# waits for both. Output goes to $scratch/server.out and client.out. Returns non-zero, with the
# reason in pair_error, when either fails or takes longer than LIMIT_S seconds.
server_command=()
client_command=()
pair_error=""
run_pair() {
  local port="$1" limit_s="$2" server_pid tries=0 status=0
  timeout --kill-after=5 "$limit_s" "${server_command[@]}" >"$scratch/server.out" 2>&1 &
  server_pid=$!
  background_pids+=("$server_pid")
  until port_listens "$port"; do
    tries=$((tries + 1))
    if [[ $tries -gt 200 ]] || ! kill -0 "$server_pid" 2>/dev/null; then
      pair_error="the server did not begin to listen on TCP port $port: ${server_command[*]}"
      kill "$server_pid" 2>/dev/null || true
      wait "$server_pid" 2>/dev/null || true
      return 1
    fi
    sleep 0.05
  done
  timeout --kill-after=5 "$limit_s" "${client_command[@]}" >"$scratch/client.out" 2>&1 || status=$?
  if [[ $status -ne 0 ]]; then
    pair_error="the client ended with status $status (124: no end within $limit_s s): ${client_command[*]}"
    kill "$server_pid" 2>/dev/null || true
    wait "$server_pid" 2>/dev/null || true
    return 1
  fi
  wait "$server_pid" || status=$?
  [[ $status -eq 0 ]] || pair_error="the server ended with status $status: ${server_command[*]}"
  return "$status"
}

# show_pair_output: the last lines of both, for a failure message.
show_pair_output() {
  local who
  for who in server client; do
    [[ -s "$scratch/$who.out" ]] || continue
    printf -- '--- %s said:\n' "$who" >&2
    tail -n 20 "$scratch/$who.out" >&2
  done
}
