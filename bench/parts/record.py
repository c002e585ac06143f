# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""results.json, charts and the page of a run."""
import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess

from parts.charts import draw_bars, draw_charts
from parts.marks import targets
from parts.setup import Setup, fail, note


def record(results, judged, options, nics, rounds, seconds):
    with open("/proc/cpuinfo", encoding="ascii") as lines:
        model = next((line.split(":")[1].strip() for line in lines if "model name" in line), "")
    at_one_distance = results.by_distance()[0][1]
    whole = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
             "machine": f"{model}, {os.cpu_count()} cores, {platform.system()} "
                        f"{platform.release()}",
             "rounds": rounds, "quick": options.quick, "marks": judged,
             "targets": [] if nics else targets(at_one_distance),
             "results": [{"metric": metric, "unit": unit, "transport": transport,
                          "median": statistics.median(values), "values": values,
                          "distances_ns": results.distances[metric, unit][transport]}
                         for (metric, unit), transports in results.values.items()
                         for transport, values in transports.items()]}
    with open(os.path.join(options.out, "results.json"), "w", encoding="ascii") as file:
        json.dump(whole, file, indent=1)
    if not shutil.which("gnuplot"):
        note("no gnuplot: no charts")
    elif nics:
        draw_bars(at_one_distance, options.out, nics)
    else:
        draw_charts(at_one_distance, options.out)
    if options.report:
        page = os.path.join(options.out, "report.html")
        program = os.path.join(Setup.build, "tools", "uet_report")
        if not os.path.exists(program):
            fail(f"{program} is not there", "build the target uet_report")
        subprocess.run([program, os.path.join(options.out, "results.json"), "-o", page], check=True)
    note(f"{options.out}: results.json and charts; {seconds:.0f} s")
    if not results.values:
        fail("nothing could be measured", "the messages of the rounds above say why")
