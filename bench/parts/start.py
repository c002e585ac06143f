# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The cost of being there: the time to open a domain and an endpoint, the memory of a process, and
the processor time of 64 processes whose endpoints have nothing to do."""
from parts.processes import LOOPBACK, run_all
from parts.setup import LATENCY, bench_program, transports

IDLE_PROCESSES = 64


def measure_start(results, quick):
    program = bench_program("uet_start_cost")
    for transport, provider, environment in transports("tcp"):
        environment = {"FI_PROVIDER": provider.split(";")[0], **environment}
        command = [program, "--provider", provider, "--address", "127.0.0.1"]
        with results.measuring():
            take(results, transport, run_all(command, [], environment, place=LOOPBACK) or [""])
        seconds = "1" if quick else "5"
        with results.measuring():
            idle = run_all(command + ["--idle", seconds], [command + ["--idle", seconds]] *
                           (IDLE_PROCESSES - 1), environment, place=LOOPBACK)
        if idle:
            microseconds = sum(value for output in idle for name, value, _ in figures(output)
                               if name == "idle")
            results.add(f"idle of {IDLE_PROCESSES}", "us/s", transport, microseconds)


def figures(output):
    """(name, value, unit) of each line 'result: VALUE UNIT NAME'."""
    for line in output.splitlines():
        words = line.split()
        if words[:1] == ["result:"]:
            yield words[3], float(words[1]), words[2]


def take(results, transport, outputs):
    for output in outputs:
        told = {name: (value, unit) for name, value, unit in figures(output)}
        for name, (value, unit) in told.items():
            results.add(name, unit, transport, value)
        if "domain" in told and "endpoint" in told:
            results.add("start", LATENCY, transport, told["domain"][0] + told["endpoint"][0])
