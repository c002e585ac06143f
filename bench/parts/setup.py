# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Where everything is, and the transports that take turns."""
import functools
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LATENCY, RATE, BANDWIDTH = "us", "1/s", "MB/s"
# Name, libfabric provider, environment.
PROVIDERS = [
    ("uet", "uet", {"FI_UET_LOCAL": "off"}),
    ("uet rings", "uet", {"FI_UET_LOCAL": "auto"}),
    ("tcp", "tcp;ofi_rxm", {}),
    ("udp", "udp;ofi_rxd", {}),
    ("sockets", "sockets", {}),
    ("shm", "shm", {}),
]
# Transports shown beside NIC back ends, over the same network.
BESIDE_NICS = {"tcp": "tcp;ofi_rxm", "rxd": "udp;ofi_rxd", "ucx tcp": None}


class Setup:
    """Of this run."""
    build = os.path.join(ROOT, "build", "release-pgo")
    libfabrics = []  # directories of --libfabric


def fail(text, remedy):
    sys.exit(f"\nFAILED: {text}\n  What to do: {remedy}")


def note(text):
    print(f"   {text}", flush=True)


def bytes_text(size):
    for unit, factor in (("M", 1 << 20), ("K", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


@functools.lru_cache
def libfabric_version(directory):
    """Major and minor version that fi_info of that installation prints: 2.6."""
    program = os.path.join(directory, "bin", "fi_info")
    libraries = os.path.join(directory, "lib")
    if not os.path.exists(program):
        fail(f"--libfabric {directory}: no bin/fi_info there",
             "give the directory that libfabric was installed to (./configure --prefix)")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False,
                          env={**os.environ, "LD_LIBRARY_PATH": libraries})
    for line in done.stdout.splitlines():
        if line.startswith("libfabric:"):
            return ".".join(line.split()[1].split(".")[:2])
    return fail(f"--libfabric {directory}: fi_info --version ends with {done.returncode}",
                f"run it with LD_LIBRARY_PATH={libraries}: {done.stderr.strip()}")


def other_libfabrics():
    """Providers of each libfabric of --libfabric: its tcp has reliable datagrams of its own from
    version 1.18 on."""
    entries = []
    for directory in Setup.libfabrics:
        version = libfabric_version(directory)
        environment = {"LD_LIBRARY_PATH": os.path.join(directory, "lib")}
        entries += [(f"{provider} {version}", provider, environment) for provider in ("tcp", "shm")]
    return entries


def providers(quick):
    """sockets takes longer than all others together."""
    return [entry for entry in PROVIDERS if not quick or entry[0] != "sockets"] + other_libfabrics()


def transports(*families):
    """uet over kernel UDP, and the providers whose name begins with one of these words (tcp)."""
    return [entry for entry in providers(False) if entry[0] == "uet" or
            entry[0].split()[0] in families]


def prepare(build, report):
    """Packages and programs, as every script gets them."""
    programs = ["uet-fi", "uet_bench", "uet_raw_path", "uet_core_distance", "uet_start_cost"]
    steps = """source scripts/common.sh
        ensure_packages "${build_packages[@]}"
        wish_packages ethtool ucx-utils openmpi-bin libopenmpi-dev netpipe-openmpi gnuplot-nox
        """
    if build:
        steps += f"""build release-pgo {" ".join(programs + ["uet_report"] * report)}
            for more in uet_fake_verbs uet_impair; do
              if grep -qs "$more" build/release-pgo/build.ninja; then build release-pgo "$more"; fi
            done"""
    if subprocess.run(["bash", "-euc", steps], cwd=ROOT, check=False).returncode != 0:
        fail("the programs are not there", "the lines above say what is missing")


def example(name):
    return os.path.join(Setup.build, "examples", name)


def bench_program(name):
    return os.path.join(Setup.build, "test", "bench", name)


def have_ucx():
    return shutil.which("ucx_perftest") is not None
