#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What scripts/bench makes of what it measured: medians, marks, curves. Use: report_test.py"""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import sys
import tempfile
import unittest
import unittest.mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True


def load(path):
    loader = importlib.machinery.SourceFileLoader("bench", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench", loader))
    loader.exec_module(module)
    return module


bench = load(os.path.join(ROOT, "scripts", "bench"))


def line(value, unit, mode, size, clients=1):
    return f"result: {value} {unit} mode={mode} size={size} clients={clients}"


class Report(unittest.TestCase):
    def setUp(self):
        self.results = bench.Results()
        for transport, times in (("uet", (30, 6, 7)), ("tcp", (10, 10, 11))):
            for time in times:
                text = "\n".join([line(1, "us", "lat", 8), line(time, "us", "lat", 64),
                                  line(500, "MB/s", "bw", 65536),
                                  line(900, "MB/s", "bw", 65536, clients=2)])
                bench.take_results(text, self.results, transport, 1)

    def test_the_first_is_for_warmth_and_the_median_counts(self):
        self.assertIsNone(self.results.median("lat 8", "uet"))
        self.assertEqual(self.results.median("lat 64", "uet"), 7)

    def test_curves_have_the_sizes_of_two_processes(self):
        self.assertEqual(bench.curves_of(self.results, "lat"), {"uet": [(64, 7)], "tcp": [(64, 10)]})
        self.assertEqual(bench.curves_of(self.results, "bw"),
                         {"uet": [(65536, 500)], "tcp": [(65536, 500)]})

    def test_what_fails_twice_is_left_out(self):
        self.results.failed("sockets", "RMA")
        self.assertTrue(self.results.tries("sockets", "RMA"))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.results.failed("sockets", "RMA")
        self.assertFalse(self.results.tries("sockets", "RMA"))
        self.assertTrue(self.results.tries("sockets", "tagged messages"))
        self.assertIn("sockets RMA: left out", out.getvalue())

    def test_only_sockets_is_left_out_of_a_quick_run(self):
        left_out = set(name for name, *_ in bench.providers(False)) - set(
            name for name, *_ in bench.providers(True))
        self.assertEqual(left_out, {"sockets"})

    def test_marks_are_judged_where_both_were_measured(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            bench.print_tables(self.results)
            judged = bench.judge_marks(self.results)
        self.assertEqual([(mark["mark"], mark["value"], mark["met"]) for mark in judged],
                         [("64 B latency, kernel UDP, of tcp", 0.7, True)])
        self.assertIn("bw 64K of 2, MB/s", out.getvalue())

    def test_what_was_measured_at_two_distances_is_told_apart(self):
        results = bench.Results()
        for transport, near, far in (("uet", 6, 7), ("tcp", 8, 14)):
            for distance, value in (((34, 36), near), ((170, 165), far), ((35, 168), 99)):
                with unittest.mock.patch.object(bench, "core_distance", side_effect=distance):
                    with results.measuring():
                        results.add("lat 64", "us", transport, value)
        parts = results.by_distance()
        self.assertEqual([(part.median("lat 64", "uet"), part.median("lat 64", "tcp"))
                          for _, part in parts], [(6, 8), (7, 14)])
        self.assertIn("near", parts[0][0])
        self.assertIn("far", parts[1][0])
        self.assertEqual(results.least(), 1)

    def test_a_distance_that_only_varies_is_one(self):
        results = bench.Results()
        for distance in ((34, 50), (60, 40)):
            results.add("lat 64", "us", "uet", 6, distance)
        self.assertEqual(results.by_distance(), [("", results)])
        self.assertEqual(results.least(), 2)
        self.assertEqual(list(results.rows())[1], ("lat 64", "us", "uet", 6, (60, 40)))

    def test_each_mode_is_measured_by_a_pair_of_its_own(self):
        warm = ("lat", 8, 200, 64)
        tagged = [warm, ("lat", 8, 10, 1), ("lat", 64, 10, 1), ("rate", 8, 20, 64)]
        writes = [("write", 4096, 64, 16), ("write", 1 << 20, 10, 16)]
        self.assertEqual(list(bench.pieces((tagged, writes))),
                         [(0, tagged[:3]), (0, [warm, tagged[3]]), (1, writes)])

    def test_back_ends_are_told_beside_their_path_and_other_transports(self):
        results = bench.Results()
        for transport, latency, stream, write in (("uet udp", 14, 900, 800), ("bare udp", 10, 1000, None),
                                                  ("uet xdp", 9, 700, 700), ("bare xdp", 6, 800, None),
                                                  ("tcp", 28, 450, 400)):
            results.add("lat 64", "us", transport, latency)
            results.add("bw 1M", "MB/s", transport, stream)
            if write:
                results.add("write 1M", "MB/s", transport, write)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            bench.print_nic_tables(results, ["udp", "xdp"])
            judged = bench.judge_nic_marks(results, ["udp", "xdp"])
        lines = [line.split() for line in out.getvalue().splitlines()]
        self.assertIn(["udp", "14", "10", "1.40", "0.50", "-", "-"], lines)
        self.assertIn(["udp", "800", "1,000", "0.80", "2.00", "-", "-"], lines)
        self.assertIn(["tcp", "28"], lines)
        self.assertEqual([(mark["value"], mark["met"]) for mark in judged],
                         [(3, False), (2, True), (0.8, False)])

    def test_all_back_ends_are_those_that_were_built(self):
        with tempfile.TemporaryDirectory() as build:
            modules = os.path.join(build, "prov", "uet")
            os.makedirs(modules)
            for name in ("libuet-nic-xdp.so", "libuet-nic-packet.so", "libuet-fi.so"):
                with open(os.path.join(modules, name), "w", encoding="ascii"):
                    pass
            with unittest.mock.patch.object(bench, "BUILD", build):
                self.assertEqual(bench.chosen_nics("all"), ["udp", "packet", "packet:native", "xdp"])
        self.assertEqual(bench.chosen_nics("udp,xdp"), ["udp", "xdp"])


if __name__ == "__main__":
    unittest.main()
