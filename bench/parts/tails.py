# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Percentiles of the latency of 64 B: alone, beside a stream of writes to the same peer, beside
another pair that loads the link to 80 %, and of processes that sleep."""
from parts.network import inside, measure_in_network
from parts.pair import measure_plan
from parts.processes import LOOPBACK, TWO_HOSTS, load
from parts.setup import transports

LINK_BITS = 1_000_000_000
LOAD_MB = LINK_BITS // 8 // 1_000_000 * 80 // 100
WARM = ("lat", 8, 200, 64)


def measure_tails(results, quick):
    count = 5000 if quick else 50000
    for transport, provider, environment in transports("tcp"):
        for plan in ([WARM, ("lat", 64, count, 1)], [WARM, ("beside", 64, count // 10, 4)]):
            measure_plan(results, transport, provider, environment, plan, ["--tagged"], LOOPBACK)
    for transport, *_ in transports("tcp"):
        measure_in_network(results, loaded, transport, quick, UET_E2E_RATE=str(LINK_BITS))


@inside
def loaded(results, name, quick):
    """Of one transport, while another pair of processes sends its share of the link from the second host to the first."""
    transport, provider, environment = next(entry for entry in transports("tcp") if entry[0] == name)
    count = 1000 if quick else 10000
    with load(provider, environment, LOAD_MB, TWO_HOSTS):
        measure_plan(results, transport, provider, environment, [WARM, ("lat", 64, count, 1)],
                     ["--tagged"], TWO_HOSTS, "loaded")


def measure_waits(results, quick):
    """Both processes sleep in fi_cq_sread."""
    count = 2000 if quick else 20000
    for transport, provider, environment in transports("tcp"):
        measure_plan(results, transport, provider, environment, [WARM, ("lat", 64, count, 1)],
                     ["--tagged", "--sleep"], LOOPBACK, "sread")
