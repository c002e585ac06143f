# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Everything that was measured, by metric and transport, with the distance of the processors."""
import contextlib
import statistics
import subprocess

from parts.setup import bench_program, note


def core_distance():
    """Nanoseconds that a cache line takes from one processor to the other; 0: there is only one."""
    program = bench_program("uet_core_distance")
    text = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
    return float(text.split()[1])


class Results:
    APART = 2  # times as far: two distances, not one that varies

    def __init__(self):
        self.values = {}  # (metric, unit) -> transport -> list
        self.distances = {}  # the same, of each value: the processors' before and after
        self.distance = None  # of what is measured now, filled in afterwards
        self.failures = {}  # the call that was tried and failed -> how often

    def tries(self, *what):
        """False for what has failed twice: it would cost its time limit in each round."""
        return self.failures.get(what, 0) < 2

    def failed(self, *what):
        self.failures[what] = self.failures.get(what, 0) + 1
        if not self.tries(*what):
            note(f"{' '.join(map(str, what))}: left out from here on")

    def add(self, metric, unit, transport, value, distance=None):
        self.values.setdefault((metric, unit), {}).setdefault(transport, []).append(value)
        self.distances.setdefault((metric, unit), {}).setdefault(transport, []).append(
            distance or self.distance)

    @contextlib.contextmanager
    def measuring(self):
        """Around one measurement, short enough that the processors mostly stay where they are."""
        self.distance = [core_distance(), None]
        yield
        self.distance[1] = core_distance()
        self.distance = None

    def rows(self):
        for (metric, unit), transports in self.values.items():
            for transport, values in transports.items():
                for value, distance in zip(values, self.distances[metric, unit][transport]):
                    yield metric, unit, transport, value, distance

    def by_distance(self):
        """(what to call it, its results) of each distance; one alone if the processors stayed where
        they were. What was measured while they moved is in none."""
        stamps = [ns for row in self.rows() for ns in row[4] or []]
        if not stamps or max(stamps) <= self.APART * max(min(stamps), 1):
            return [("", self)]
        middle = (max(min(stamps), 1) * max(stamps)) ** 0.5
        parts = {True: Results(), False: Results()}
        for *row, distance in self.rows():
            if distance and (distance[0] < middle) == (distance[1] < middle):
                parts[distance[0] < middle].add(*row, distance)
        names = {True: f"processors near each other (a cache line in under {middle:.0f} ns)",
                 False: f"processors far from each other ({middle:.0f} ns and more)"}
        return [(names[near], part) for near, part in parts.items() if part.values]

    def least(self):
        """How often everything has been measured at one distance, the better one for each."""
        best = {}
        for _, part in self.by_distance():
            for key, transports in part.values.items():
                for transport, values in transports.items():
                    best[key, transport] = max(best.get((key, transport), 0), len(values))
        return min((best.get((key, transport), 0) for key, transports in self.values.items()
                    for transport in transports), default=0)

    def median(self, metric, transport):
        for (name, _), transports in self.values.items():
            if name == metric and transport in transports:
                return statistics.median(transports[transport])
        return None

    def transports(self):
        seen = []
        for transports in self.values.values():
            seen += [name for name in transports if name not in seen]
        return seen
