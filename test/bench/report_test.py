#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What scripts/bench makes of what it measured: medians, marks, curves. Use: report_test.py"""
import contextlib
import io
import os
import sys
import tempfile
import unittest
import unittest.mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "bench"))

from parts import charts, loss, marks, nics, pair, setup, start, tables, tails  # noqa: E402
from parts import results as results_module  # noqa: E402
from parts.results import Results  # noqa: E402
from parts.setup import Setup  # noqa: E402


def line(value, unit, mode, size, clients=1, more=""):
    return f"result: {value} {unit} mode={mode} size={size} clients={clients} {more}"


class Report(unittest.TestCase):
    def setUp(self):
        self.results = Results()
        for transport, times in (("uet", (30, 6, 7)), ("tcp", (10, 10, 11))):
            for time in times:
                text = "\n".join([line(1, "us", "lat", 8), line(time, "us", "lat", 64),
                                  line(500, "MB/s", "bw", 65536),
                                  line(900, "MB/s", "bw", 65536, clients=2)])
                pair.take_results(text, self.results, transport, 1)

    def test_the_first_is_for_warmth_and_the_median_counts(self):
        self.assertIsNone(self.results.median("lat 8", "uet"))
        self.assertEqual(self.results.median("lat 64", "uet"), 7)

    def test_curves_have_the_sizes_of_two_processes(self):
        self.assertEqual(charts.curves_of(self.results, "lat"), {"uet": [(64, 7)], "tcp": [(64, 10)]})
        self.assertEqual(charts.curves_of(self.results, "bw"),
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
        left_out = set(name for name, *_ in setup.providers(False)) - set(
            name for name, *_ in setup.providers(True))
        self.assertEqual(left_out, {"sockets"})

    def test_marks_are_judged_where_both_were_measured(self):
        self.results.add("lat 64", "us", "raw", 5)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            tables.print_tables(self.results)
            judged = marks.judge_marks(self.results)
        self.assertEqual([(mark["mark"], mark["value"], mark["met"]) for mark in judged],
                         [("64 B latency, kernel UDP, of bare UDP (raw)", 1.4, False)])
        self.assertIn("bw 64K of 2, MB/s", out.getvalue())

    def test_marks_are_against_the_best_of_its_kind(self):
        results = Results()
        for transport, latency, write in (("uet", 6, 300), ("tcp", 12, 200), ("tcp 2.6", 8, 400),
                                          ("ucx tcp", 1, 900)):
            results.add("lat-p50 64", "us", transport, latency)
            results.add("write 1M", "MB/s", transport, write)
        with contextlib.redirect_stdout(io.StringIO()):
            judged = {mark["mark"]: (mark["value"], mark["met"], mark["beside"])
                      for mark in marks.judge_marks(results)}
        self.assertEqual(judged["64 B latency, kernel UDP, p50, of the best tcp (tcp 2.6)"],
                         (0.75, False, "tcp 2.6"))
        self.assertEqual(judged["1 MiB write, kernel UDP, of the best tcp (tcp 2.6)"],
                         (0.75, False, "tcp 2.6"))
        told = {target["metric"]: target["other"] for target in marks.targets(results)}
        self.assertEqual(told["lat-p50 64"], "tcp 2.6")

    def test_marks_on_a_figure_or_on_another_metric_of_the_same(self):
        results = Results()
        for metric, value in (("start", 90), ("write 1M at 0%", 400), ("write 1M at 1%", 300)):
            results.add(metric, "", "uet", value)
        with contextlib.redirect_stdout(io.StringIO()):
            judged = [(mark["mark"], mark["value"], mark["met"])
                      for mark in marks.judge_marks(results)]
        self.assertEqual(judged, [("1 MiB write, 1 % loss, of loss-free", 0.75, False),
                                  ("first domain and endpoint, us", 90, True)])

    def test_percentiles_are_metrics_beside_the_mean(self):
        results = Results()
        text = line(7, "us", "lat", 64, more="provider=tcp p50=6 p99=9 p999=20")
        pair.take_results(text, results, "tcp", 0, "loaded", "at 1%")
        self.assertEqual([(metric, value) for metric, _, _, value, _ in results.rows()],
                         [("loaded 64 at 1%", 7), ("loaded-p50 64 at 1%", 6),
                          ("loaded-p99 64 at 1%", 9), ("loaded-p99.9 64 at 1%", 20)])

    def test_metrics_with_a_condition_are_in_no_curve(self):
        self.results.add("lat 64 at 1%", "us", "uet", 900)
        self.assertEqual(charts.curves_of(self.results, "lat")["uet"], [(64, 7)])

    def test_another_libfabric_adds_its_tcp_and_shm(self):
        with tempfile.TemporaryDirectory() as prefix:
            os.makedirs(os.path.join(prefix, "bin"))
            program = os.path.join(prefix, "bin", "fi_info")
            with open(program, "w", encoding="ascii") as file:
                file.write("#!/bin/sh\necho fi_info: 9.8.7\necho libfabric: 9.8.7\n")
            os.chmod(program, 0o755)
            with unittest.mock.patch.object(Setup, "libfabrics", [prefix]):
                names = [name for name, *_ in setup.transports("tcp")]
                environments = {name: environment for name, _, environment in setup.providers(True)}
        self.assertEqual(names, ["uet", "tcp", "tcp 9.8"])
        self.assertEqual(environments["shm 9.8"], {"LD_LIBRARY_PATH": os.path.join(prefix, "lib")})

    def test_a_libfabric_that_is_not_there_is_named(self):
        with self.assertRaises(SystemExit) as ended:
            setup.libfabric_version("/nowhere")
        self.assertIn("--libfabric /nowhere: no bin/fi_info there", str(ended.exception))

    def test_the_time_to_start_is_that_of_domain_and_endpoint(self):
        results = Results()
        start.take(results, "tcp", ["result: 80.5 us domain\nresult: 20.0 us endpoint\n"
                                    "result: 4000.0 KiB memory\n"])
        self.assertEqual(results.median("start", "tcp"), 100.5)
        self.assertEqual(results.median("memory", "tcp"), 4000)

    def test_all_transports_lose_the_same_share(self):
        asked = []
        with unittest.mock.patch.object(
                loss, "measure_in_network",
                lambda _, function, argument, quick, **variables: asked.append(
                    (argument, variables.get("UET_E2E_IMPAIR")))):
            loss.measure_loss(Results(), True)
        self.assertEqual(asked, [("uet,0%", None), ("tcp,0%", None), ("uet ordered,0%", None),
                                 ("uet,1%", "drop=1%"), ("tcp,1%", "drop_other=1%"),
                                 ("uet ordered,1%", "drop=1%")])

    def test_the_load_is_four_fifths_of_the_link(self):
        self.assertEqual(tails.LOAD_MB * 8_000_000, tails.LINK_BITS * 8 // 10)

    def test_what_was_measured_at_two_distances_is_told_apart(self):
        results = Results()
        for transport, near, far in (("uet", 6, 7), ("tcp", 8, 14)):
            for distance, value in (((34, 36), near), ((170, 165), far), ((35, 168), 99)):
                with unittest.mock.patch.object(results_module, "core_distance", side_effect=distance):
                    with results.measuring():
                        results.add("lat 64", "us", transport, value)
        parts = results.by_distance()
        self.assertEqual([(part.median("lat 64", "uet"), part.median("lat 64", "tcp"))
                          for _, part in parts], [(6, 8), (7, 14)])
        self.assertIn("near", parts[0][0])
        self.assertIn("far", parts[1][0])
        self.assertEqual(results.least(), 1)

    def test_a_distance_that_only_varies_is_one(self):
        results = Results()
        for distance in ((34, 50), (60, 40)):
            results.add("lat 64", "us", "uet", 6, distance)
        self.assertEqual(results.by_distance(), [("", results)])
        self.assertEqual(results.least(), 2)
        self.assertEqual(list(results.rows())[1], ("lat 64", "us", "uet", 6, (60, 40)))

    def test_each_mode_is_measured_by_a_pair_of_its_own(self):
        warm = ("lat", 8, 200, 64)
        tagged = [warm, ("lat", 8, 10, 1), ("lat", 64, 10, 1), ("rate", 8, 20, 64)]
        writes = [("write", 4096, 64, 16), ("write", 1 << 20, 10, 16)]
        self.assertEqual(list(pair.pieces((tagged, writes))),
                         [(0, tagged[:3]), (0, [warm, tagged[3]]), (1, writes)])

    def test_back_ends_are_told_beside_their_path_and_other_transports(self):
        results = Results()
        for transport, latency, stream, write in (("uet udp", 14, 900, 800), ("bare udp", 10, 1000, None),
                                                  ("uet xdp", 9, 700, 700), ("bare xdp", 6, 800, None),
                                                  ("tcp", 28, 450, 400)):
            results.add("lat 64", "us", transport, latency)
            results.add("bw 1M", "MB/s", transport, stream)
            if write:
                results.add("write 1M", "MB/s", transport, write)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            tables.print_nic_tables(results, ["udp", "xdp"])
            judged = tables.judge_nic_marks(results, ["udp", "xdp"])
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
            with unittest.mock.patch.object(Setup, "build", build):
                self.assertEqual(nics.chosen_nics("all"), ["udp", "packet", "packet:native", "xdp"])
        self.assertEqual(nics.chosen_nics("udp,xdp"), ["udp", "xdp"])


if __name__ == "__main__":
    unittest.main()
