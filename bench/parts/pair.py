# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Latency, bandwidth and message rate of a pair of processes, and of several clients of one server."""
from parts.processes import LOOPBACK, Ports, run_all
from parts.setup import (BANDWIDTH, LATENCY, RATE, bench_program, bytes_text, example, have_ucx,
                         providers)

PERCENTILES = {"p50": "p50", "p99": "p99", "p999": "p99.9"}  # of uet_bench -> of a metric


def iterations_for(size, quick):
    """About as many as take a tenth of a second, or a fifth of that."""
    most = 4000 if quick else 20000
    return max(8 if quick else 32, min(most, (64 << 20 if quick else 512 << 20) // max(size, 1)))


def plans(quick):
    """Of tagged messages and of RMA: lists of (mode, size, iterations, window)."""
    latency = [8, 64, 4096] if quick else [8, 64, 512, 4096, 16384, 65536, 262144]
    stream = [4096, 1 << 20] if quick else [4096, 65536, 1 << 20, 16 << 20]
    rma = [4096, 1 << 20] if quick else stream
    window = {4096: 64, 65536: 64, 1 << 20: 16, 16 << 20: 4}
    warm = [("lat", 8, 200, 64)]
    tagged = [("lat", size, 1000 if quick else 5000, 1) for size in latency]
    tagged += [("rate", 8, 20000 if quick else 100000, 64)]
    tagged += [("bw", size, iterations_for(size, quick), window[size]) for size in stream]
    tagged += [("bidir", 1 << 20, iterations_for(1 << 20, quick), 16)]
    writes = [(mode, size, iterations_for(size, quick), window[size])
              for mode in ("write", "read") for size in rma]
    return warm + tagged, [("write", 4096, 64, 16)] + writes


def take_results(output, results, transport, skip, rename=None, suffix=""):
    """Of uet_bench, without the first `skip`. Latencies have percentiles beside their mean.
    `rename`: the mode by another name; `suffix`: behind the name of each metric."""
    lines = [line.split() for line in output.splitlines() if line.startswith("result:")]
    for words in lines[skip:]:
        fields = dict(word.split("=", 1) for word in words[3:])
        mode, size = rename or fields["mode"], bytes_text(int(fields["size"]))
        unit = {"us": LATENCY, "messages/s": RATE}.get(words[2], words[2])
        clients = int(fields["clients"])
        tail = (f" of {clients}" if clients > 1 else "") + (f" {suffix}" if suffix else "")
        results.add(f"{mode} {size}{tail}", unit, transport, float(words[1]))
        for field, name in PERCENTILES.items():
            if field in fields:
                results.add(f"{mode}-{name} {size}{tail}", unit, transport, float(fields[field]))


def measure_pair(results, quick):
    for transport, provider, environment in providers(quick):
        measure_provider(results, transport, provider, environment, plans(quick))
    if have_ucx():
        measure_ucx(results, plans(quick))


def pieces(both_plans):
    """(whether it is RMA, plan) of each pair of uet_bench: one for each mode, so that none takes
    long, and each with the first entry of its plan, for warmth."""
    for is_rma, (warm, *plan) in enumerate(both_plans):
        for mode in dict.fromkeys(item[0] for item in plan):
            yield is_rma, [warm] + [item for item in plan if item[0] == mode]


def bench_command(provider, port, plan, options):
    text = ",".join(":".join(map(str, item)) for item in plan)
    return [example("uet_bench"), "--provider", provider, "--port", str(port), "--plan", text, *options]


def measure_plan(results, transport, provider, environment, plan, options, place, rename=None, suffix=""):
    """A pair of uet_bench with these options; the first entry of its plan is for warmth. `rename`,
    `suffix`: see take_results()."""
    what = (transport, rename or plan[1][0], *options, suffix)
    if not results.tries(*what):
        return
    port = Ports.free()
    command = bench_command(provider, port, plan, options)
    with results.measuring():
        outputs = run_all(command + ["--server"], [command + ["--client", place.addresses[0]]],
                          {"FI_PROVIDER": provider.split(";")[0], **environment}, port, place)
        if outputs:
            take_results(outputs[0], results, transport, 1, rename, suffix)
        else:
            results.failed(*what)


def measure_provider(results, transport, provider, environment, both_plans, place=LOOPBACK):
    """A pair of uet_bench for each mode of tagged messages and of RMA."""
    for is_rma, plan in pieces(both_plans):
        measure_plan(results, transport, provider, environment, plan, [] if is_rma else ["--tagged"], place)


UCX_TESTS = {"ucx tcp": {"lat": "tag_lat", "rate": "tag_bw", "bw": "tag_bw", "write": "ucp_put_bw",
                         "read": "ucp_get"},
             "ucx am": {"lat": "ucp_am_lat", "rate": "ucp_am_bw", "bw": "ucp_am_bw"}}


def measure_ucx(results, both_plans, place=LOOPBACK, transports=("ucx tcp", "ucx am")):
    """UCX over TCP by its tagged messages and puts, and by its active messages."""
    for transport in transports:
        for item in both_plans[0][1:] + both_plans[1][1:]:
            if item[0] in UCX_TESTS[transport]:
                measure_ucx_item(results, transport, item, place)


def measure_ucx_item(results, transport, item, place):
    mode, size, iterations, window = item
    port = Ports.free()
    command = ["ucx_perftest", "-p", str(port), "-t", UCX_TESTS[transport][mode], "-s", str(size), "-n",
               str(iterations), "-w", "50", "-O", str(window), "-f"]
    with results.measuring():
        outputs = run_all(command, [command[:1] + [place.addresses[0]] + command[1:]], {}, port, place)
        take_ucx_results((outputs or [""])[0], results, transport, mode, size)


def take_ucx_results(output, results, transport, mode, size):
    """iterations, latency: typical, average, overall; MB/s (2^20): average, overall; messages/s"""
    numbers = []
    for line in output.splitlines():
        words = line.replace("Final:", "").split()
        if len(words) >= 7 and words[0].isdigit():
            numbers = words
    if not numbers:
        return
    metric = f"{mode} {bytes_text(size)}"
    if mode == "lat":
        results.add(metric, LATENCY, transport, float(numbers[3]))
    elif mode == "rate":
        results.add(metric, RATE, transport, float(numbers[-1]))
    else:
        results.add(metric, BANDWIDTH, transport, float(numbers[-3]) * 1.048576)


def measure_raw(results, quick, nics=("udp", "udp"), transport="raw", rate_bytes=8, place=LOOPBACK):
    """The path without uet: bare loops that send and take packets of the same sizes by sendmmsg
    (segmented and coalesced), rings of packet sockets and AF_XDP, rte_eth bursts, or work requests
    of verbs. `nics`: of each end, as FI_UET_NIC."""
    program = bench_program("uet_raw_path")
    measured = [("latency", 64, "lat 64", LATENCY), ("bandwidth", 8192, "bw 1M", "MB/s"),
                ("rate", rate_bytes, f"rate {rate_bytes}", RATE)]
    if nics[0] == "udp":  # whose payload is read from and written to as much memory as a write's
        measured.append(("memory", 8192, "write 1M", BANDWIDTH))
    for mode, size, metric, unit in measured:
        server, client = ([program, role, mode, nics[end], place.addresses[end],
                           place.addresses[1 - end], str(size), "0.3" if quick else "1"]
                          for end, role in enumerate(("server", "client")))
        with results.measuring():
            for line in "\n".join(run_all(server, [client], {}, place=place) or []).splitlines():
                if line.startswith("result:"):
                    results.add(metric, unit, transport, float(line.split()[1]))


def measure_peers(results, quick):
    """One server and several clients, each a process."""
    for transport, provider, environment in providers(quick):
        for clients in ([2, 4] if quick else [1, 2, 4, 8]):
            what = (transport, f"with {clients} clients")
            if not results.tries(*what):
                continue
            port = Ports.free()
            count = (10000 if quick else 40000) // clients
            plan = f"rate:8:100:16,rate:8:{count}:64,bw:65536:{count // 20}:16"
            command = [example("uet_bench"), "--provider", provider, "--tagged", "--port", str(port),
                       "--plan", plan, "--clients", str(clients)]
            with results.measuring():
                outputs = run_all(command + ["--server"],
                                  [command + ["--client", "127.0.0.1"]] * clients,
                                  {"FI_PROVIDER": provider.split(";")[0], **environment}, port)
                if not outputs:
                    results.failed(*what)
                elif clients > 1:
                    take_results(outputs[-1], results, transport, 1)
