# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""NIC back ends, the bare path under each, and other transports over the same network."""
import os

from parts.network import inside, measure_in_network
from parts.pair import measure_provider, measure_raw, measure_ucx
from parts.processes import TWO_HOSTS, Place
from parts.setup import BESIDE_NICS, Setup, have_ucx


def chosen_nics(wanted):
    """Values of FI_UET_NIC that --nic asks for; with "all", those that were built."""
    if wanted != "all":
        return wanted.split(",")
    more = {"dpdk": ["dpdk:net_af_packet", "dpdk:net_memif"], "packet": ["packet", "packet:native"],
            "shared": ["shared", "shared:packet"]}
    nics = ["udp"]
    prefix, suffix = "libuet-nic-", ".so"
    for file in sorted(os.listdir(os.path.join(Setup.build, "prov", "uet"))):
        if file.startswith(prefix) and file.endswith(suffix):
            name = file[len(prefix):-len(suffix)]
            nics += more.get(name, [name])
    return nics


def measure_nics(results, nics, quick):
    """One after the other, each in a network of its own."""
    for name in (*(f"uet {nic}" for nic in nics), *BESIDE_NICS):
        nic = "udp" if name in BESIDE_NICS else name.removeprefix("uet ")
        measure_in_network(results, one_nic, name, quick, f"{nic},{nic}", UET_E2E_TRAINS="yes")


@inside
def one_nic(results, name, quick):
    """A NIC back end with the bare path under it, or a transport that stands beside them."""
    large, small = (100, 20000) if quick else (500, 100000)
    both_plans = ([("lat", 8, 200, 64), ("lat", 64, small // 10, 1), ("bw", 1 << 20, large, 16),
                   ("rate", 64, small, 64)], [("write", 4096, 64, 16), ("write", 1 << 20, large, 16)])
    if name == "ucx tcp":
        if have_ucx():
            measure_ucx(results, both_plans, TWO_HOSTS, [name])
    elif name in BESIDE_NICS:
        measure_provider(results, name, BESIDE_NICS[name], {}, both_plans, TWO_HOSTS)
    else:
        nic = name.removeprefix("uet ")
        nics = (nic, nic)
        if nic == "dpdk:net_memif":  # joins both ends itself, by memory that they share
            nics = [f"{nic},role={role},socket=/run/netns/memif" for role in ("server", "client")]
        ends = [[*prefix, "env", f"FI_UET_NIC={own}"] for prefix, own in zip(TWO_HOSTS.prefixes, nics)]
        place = Place(TWO_HOSTS.interface, TWO_HOSTS.addresses, ends)
        measure_raw(results, quick, nics, f"bare {nic}", 64, place)
        measure_provider(results, name, "uet", {}, both_plans, place)
