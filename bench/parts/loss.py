# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A network that loses the same share of all packets of all transports, both ways, between two hosts
with an MTU of 9000 whose senders give the link packets of that size: a lost train would be many."""
from parts.network import inside, measure_in_network
from parts.pair import measure_plan
from parts.processes import TWO_HOSTS
from parts.setup import transports

WARM = ("lat", 8, 200, 64)
ORDERED = ("uet ordered", "uet", {"FI_UET_LOCAL": "off"})


def measure_loss(results, quick):
    for rate in ("0%", "1%") if quick else ("0%", "0.1%", "1%", "5%"):
        for transport, *_ in [*transports("tcp"), ORDERED]:
            # uet_impair ends with an error if a packet of a kind that is asked for never comes.
            kind = "drop" if transport.startswith("uet") else "drop_other"
            impair = {} if rate == "0%" else {"UET_E2E_IMPAIR": f"{kind}={rate}"}
            measure_in_network(results, lossy, f"{transport},{rate}", quick, UET_E2E_TRAINS="off",
                               **impair)


@inside
def lossy(results, argument, quick):
    """One transport at one rate of loss. Nothing is measured that ends by a word over TCP."""
    name, rate = argument.split(",")
    transport, provider, environment = next(
        entry for entry in [*transports("tcp"), ORDERED] if entry[0] == name)
    large = 300 if quick else 600
    exchange = [WARM, ("bidir", 1 << 20, large // 2, 8)]
    if transport == ORDERED[0]:
        plans = [(exchange, ["--tagged", "--ordered"])]
    else:
        plans = [([WARM, ("lat", 64, 300 if quick else 1000, 1)], ["--tagged"]),
                 (exchange, ["--tagged"]),
                 ([("write", 4096, 64, 16), ("write", 1 << 20, large, 16)], []),
                 ([("read", 4096, 64, 16), ("read", 1 << 20, large, 16)], [])]
    for plan, options in plans:
        measure_plan(results, transport, provider, environment, plan, options, TWO_HOSTS,
                     suffix=f"at {rate}")
