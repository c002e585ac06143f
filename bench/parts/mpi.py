# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Collectives of Open MPI and NetPIPE over uet and others."""
import os
import shutil
import subprocess

from parts.processes import run_all
from parts.setup import LATENCY, ROOT, bytes_text


MPI = [
    ("uet", {"FI_UET_LOCAL": "off"}, "uet"),
    ("uet rings", {"FI_UET_LOCAL": "auto"}, "uet"),
    ("tcp", {}, "tcp;ofi_rxm"),
    ("btl tcp", {}, None),
]


def measure_mpi(results, quick, scratch, with_netpipe):
    program = os.path.join(scratch, "collective_times")
    source = os.path.join(ROOT, "test", "bench", "collective_times.c")
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        return
    if not os.path.exists(program):
        subprocess.run(["mpicc", "-O2", "-o", program, source], check=True)
    for transport, environment, provider in MPI:
        mca = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include",
               provider] if provider else ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
                                           "--mca", "btl_tcp_if_include", "lo"]
        common = ["mpirun", "--allow-run-as-root", "--oversubscribe", *mca]
        for name in ("FI_PROVIDER_PATH", "FI_UET_IFACE", "FI_TCP_IFACE", "FI_UET_LOCAL"):
            common += ["-x", name]
        environment = {"FI_UET_LOCAL": "off", **environment}
        rounds = "200" if quick else "1000"
        with results.measuring():
            outputs = run_all(common + ["-n", "4", program, rounds], [], environment)
            for line in (outputs or [""])[0].splitlines():
                words = line.split()
                if line.startswith("result:"):
                    results.add(f"{words[3]} {bytes_text(int(words[4]))}", LATENCY, transport,
                                float(words[1]))
        if with_netpipe:
            with results.measuring():
                netpipe(results, transport, common, environment, scratch)


def netpipe(results, transport, common, environment, scratch):
    if not shutil.which("NPopenmpi"):
        return
    table = os.path.join(scratch, "netpipe.out")
    if run_all(common + ["-n", "2", "NPopenmpi", "-p", "0", "-u", str(1 << 20), "-o", table],
               [], environment) is None:
        return
    with open(table, encoding="ascii") as lines:
        rows = [[float(word) for word in line.split()] for line in lines if line.strip()]
    if rows:  # bytes, Mbit/s, seconds
        results.add("netpipe 1", LATENCY, transport, rows[0][2] * 1e6)
        results.add(f"netpipe {bytes_text(int(rows[-1][0]))}", "MB/s", transport, rows[-1][1] / 8)
