# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Results and their marks as text."""
from parts.marks import judge
from parts.setup import BESIDE_NICS

MOST_ABOVE_PATH_US = 1.5


def number_text(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def print_tables(results):
    names = results.transports()
    others = [name for name in names if not name.startswith("uet") and name != "raw"]
    print("\nMedians\n   " + f"{'metric':<22}" + "".join(f"{name:>13}" for name in names))
    for (metric, unit) in results.values:
        cells = "".join(f"{number_text(results.median(metric, name)):>13}" for name in names)
        print(f"   {metric + ', ' + unit:<22}{cells}")
    print("\nuet as a multiple of each (latency: below 1 is better; else above)")
    print("   " + f"{'metric':<22}" + "".join(f"{name:>13}" for name in [*others, "raw"]))
    for (metric, unit) in results.values:
        own = results.median(metric, "uet")
        cells = ""
        for name in [*others, "raw"]:
            beside = results.median(metric, name)
            cells += f"{own / beside if own and beside else float('nan'):>13.2f}".replace("nan",
                                                                                            "  -")
        print(f"   {metric + ', ' + unit:<22}{cells}")


def bare_path(results, metric, nic):
    """Of a write, too, the bare path is one of packets that follow one another."""
    return results.median(metric.replace("write", "bw"), f"bare {nic}")


def print_nic_tables(results, nics):
    """One for each metric. On the right uet as a multiple of the others."""
    for metric, unit in results.values:
        beside = [results.median(metric, name) for name in BESIDE_NICS]
        print(f"\n   {metric + ', ' + unit:<28}{'uet':>10}{'bare path':>10}" +
              "".join(f"{'of ' + name:>11}" for name in ("bare", *BESIDE_NICS)))
        for nic in nics:
            own, bare = results.median(metric, f"uet {nic}"), bare_path(results, metric, nic)
            title = nic + (" (stand-in)" if nic == "verbs" else "")
            print(f"   {title:<28}{number_text(own):>10}{number_text(bare):>10}" +
                  "".join(f"{own / other:>11.2f}" if own and other else f"{'-':>11}"
                          for other in (bare, *beside)))
        for name, value in zip(BESIDE_NICS, beside):
            print(f"   {name:<28}{number_text(value):>10}")


def judge_nic_marks(results, nics):
    judged = []
    print("\nMarks")
    for nic in nics:
        own, bare = results.median("lat 64", f"uet {nic}"), bare_path(results, "lat 64", nic)
        if own and bare and nic.startswith(("xdp", "dpdk")):
            judged.append(judge(f"64 B latency above the bare path, us, {nic}", own - bare, "<=",
                                MOST_ABOVE_PATH_US))
    own = results.median("write 1M", "uet udp")
    for text, other, mark in (("tcp", results.median("write 1M", "tcp"), 1.0),
                              ("bare UDP", bare_path(results, "write 1M", "udp"), 0.85),
                              ("bare UDP from and to 16 MiB",
                               results.median("write 1M", "bare udp"), 0.85)):
        if own and other:
            judged.append(judge(f"1 MiB write, kernel UDP over veth, of {text}", own / other, ">=", mark))
    return judged
