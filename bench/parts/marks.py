# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Targets of a run, as ratios of one run, and their judgement."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Mark:
    """`metric` of transport `own`, divided by `beside_metric` of the best of the transports that
    belong to `beside` (names whose first word is one of these); without `beside` the figure itself."""
    text: str
    metric: str
    own: str
    beside_metric: str
    beside: tuple
    sign: str
    limit: float


def of(text, metric, own, beside, sign, limit):
    """A mark on the same metric of others."""
    return Mark(text, metric, own, metric, tuple(beside.split("/")), sign, limit)


def of_own(text, metric, own, beside_metric, sign, limit):
    """A mark on another metric of the same transport."""
    return Mark(text, metric, own, beside_metric, (own,), sign, limit)


def figure(text, metric, own, sign, limit):
    return Mark(text, metric, own, metric, (), sign, limit)


MARKS = [
    of("64 B latency, kernel UDP, p50, of the best tcp", "lat-p50 64", "uet", "tcp", "<=", 0.68),
    of("64 B latency, kernel UDP, p99, of the best tcp", "lat-p99 64", "uet", "tcp", "<=", 0.8),
    of("64 B latency, kernel UDP, p99.9, of the best tcp", "lat-p99.9 64", "uet", "tcp", "<=", 0.9),
    of("16 KiB latency, kernel UDP, of the best tcp", "lat 16K", "uet", "tcp", "<=", 0.95),
    of("64 KiB latency, kernel UDP, of the best tcp", "lat 64K", "uet", "tcp", "<=", 0.95),
    of("256 KiB latency, kernel UDP, of the best tcp", "lat 256K", "uet", "tcp", "<=", 0.95),
    of("64 B latency, kernel UDP, of bare UDP", "lat 64", "uet", "raw", "<=", 1.3),
    of("1 MiB write, kernel UDP, of the best tcp", "write 1M", "uet", "tcp", ">=", 1.0),
    of("1 MiB read, kernel UDP, of the best tcp", "read 1M", "uet", "tcp", ">=", 1.0),
    Mark("1 MiB write, kernel UDP, of bare UDP", "write 1M", "uet", "bw 1M", ("raw",), ">=", 0.85),
    of("1 MiB write, kernel UDP, of bare UDP from and to 16 MiB", "write 1M", "uet", "raw", ">=",
       0.85),
    of("8 B rate, kernel UDP, of the best tcp", "rate 8", "uet", "tcp", ">=", 3.0),
    of("8 B latency, rings, of the best tcp", "lat 8", "uet rings", "tcp", "<=", 0.15),
    of("1 MiB bandwidth, rings, of the best tcp", "bw 1M", "uet rings", "tcp", ">=", 2.0),
    of("8 B rate, rings, of the best tcp", "rate 8", "uet rings", "tcp", ">=", 10.0),
    of("8 B latency, rings, of the best shm", "lat 8", "uet rings", "shm", "<=", 1.0),
    of("1 MiB bandwidth, rings, of the best shm", "bw 1M", "uet rings", "shm", ">=", 1.0),
    of("8 B rate, rings, of the best shm", "rate 8", "uet rings", "shm", ">=", 0.5),
    of("64 B latency, kernel UDP, of udp;ofi_rxd", "lat 64", "uet", "udp", "<=", 1.0),
    of("1 MiB write, kernel UDP, of udp;ofi_rxd", "write 1M", "uet", "udp", ">=", 1.0),
    of("8 B rate, kernel UDP, of udp;ofi_rxd", "rate 8", "uet", "udp", ">=", 1.0),
    of("64 B latency, kernel UDP, of UCX", "lat 64", "uet", "ucx", "<=", 1.0),
    of("1 MiB write, kernel UDP, of UCX", "write 1M", "uet", "ucx", ">=", 1.0),
    of("8 B rate, kernel UDP, of UCX", "rate 8", "uet", "ucx", ">=", 1.0),
    of("MPI allreduce 8 B, default settings, of the best tcp", "allreduce 8", "uet rings", "tcp/btl",
       "<=", 0.9),
    of("MPI alltoall 64 KiB, default settings, of the best tcp", "alltoall 64K", "uet rings",
       "tcp/btl", "<=", 0.9),
    of("MPI allreduce 8 B, kernel UDP, of the best tcp", "allreduce 8", "uet", "tcp/btl", "<=", 0.9),
    of("MPI alltoall 64 KiB, kernel UDP, of the best tcp", "alltoall 64K", "uet", "tcp/btl", "<=",
       0.9),
    of("64 B beside a stream of 1 MiB writes, p50, of the best tcp", "beside-p50 64", "uet", "tcp",
       "<=", 0.5),
    of_own("64 B beside a load of 80 % of the link, p99.9 of p50", "loaded-p99.9 64", "uet",
           "loaded-p50 64", "<=", 3.0),
    of("64 B beside a load of 80 % of the link, p99.9, of the best tcp", "loaded-p99.9 64", "uet",
       "tcp", "<=", 0.5),
    of("64 B, waiting in fi_cq_sread, p50, of the best tcp", "sread-p50 64", "uet", "tcp", "<=",
       1.0),
    of_own("1 MiB write, 1 % loss, of loss-free", "write 1M at 1%", "uet", "write 1M at 0%", ">=",
           0.95),
    of_own("1 MiB write, 5 % loss, of loss-free", "write 1M at 5%", "uet", "write 1M at 0%", ">=",
           0.8),
    of_own("1 MiB read, 1 % loss, of loss-free", "read 1M at 1%", "uet", "read 1M at 0%", ">=", 0.95),
    of_own("1 MiB ordered messages, 1 % loss, of loss-free", "bidir 1M at 1%", "uet ordered",
           "bidir 1M at 0%", ">=", 0.95),
    figure("64 B latency at 1 % loss, p99.9, us", "lat-p99.9 64 at 1%", "uet", "<=", 5000),
    figure("first domain and endpoint, us", "start", "uet", "<=", 100),
    figure("memory of a process, KiB", "memory", "uet", "<=", 3072),
]


def best(results, mark):
    """(name, value) of the best of the transports beside; None if none was measured."""
    found = [(results.median(mark.beside_metric, name), name) for name in results.transports()
             if name in mark.beside or name.split()[0] in mark.beside]
    found = [pair for pair in found if pair[0]]
    if not found:
        return None
    value, name = min(found) if mark.sign == "<=" else max(found)
    return name, value


def judge(text, value, sign, limit):
    met = value <= limit if sign == "<=" else value >= limit
    print(f"   {'met   ' if met else 'MISSED'}  {value:8.2f}  ({sign} {limit})  {text}")
    return {"mark": text, "value": value, "limit": f"{sign} {limit}", "met": met}


def judge_marks(results):
    judged = []
    print("\nMarks")
    for mark in MARKS:
        own = results.median(mark.metric, mark.own)
        beside = best(results, mark) if mark.beside else ("", 1)
        if own and beside:
            name, value = beside
            told = f"{mark.text} ({name})" if len(mark.beside) > 0 and name != mark.own else mark.text
            judged.append({**judge(told, own / value, mark.sign, mark.limit), "beside": name})
    return judged


def targets(results):
    """For uet_report: the ratios, with the transport that was the best."""
    told = []
    for mark in MARKS:
        beside = best(results, mark) if mark.beside else None
        if beside:
            told.append({"text": mark.text, "metric": mark.metric, "own": mark.own,
                         "other_metric": mark.beside_metric, "other": beside[0], "sign": mark.sign,
                         "ratio": mark.limit})
    return told
