# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Results as SVG."""
import os
import subprocess

from parts.setup import BESIDE_NICS, note
from parts.tables import bare_path


def curves_of(results, kind):
    """By transport: (bytes, median) of each size that two processes were measured with."""
    sizes = {"K": 1 << 10, "M": 1 << 20}
    curves = {}
    for (metric, _), transports in results.values.items():
        name, _, size = metric.partition(" ")
        if name != kind or " " in size:  # of several clients, beside something, over a lossy network
            continue
        number = int(size[:-1]) * sizes[size[-1]] if size[-1] in sizes else int(size)
        for transport in transports:
            curves.setdefault(transport, []).append((number, results.median(metric, transport)))
    return curves


def draw(out, name, title, axis, script):
    """`script`: what gnuplot is told besides, with the data."""
    head = (f"set terminal svg size 800,480 font 'sans,13' background 'white'\n"
            f"set output '{os.path.join(out, name)}.svg'\nset title '{title}'\n"
            f"set ylabel '{axis}'\nset key outside\nset grid\n")
    done = subprocess.run(["gnuplot"], input=head + script, text=True, capture_output=True,
                          check=False)
    if done.returncode != 0:
        note(f"gnuplot: {done.stderr.strip()}")


def draw_charts(results, out):
    """Latency and bandwidth by size, as SVG."""
    charts = {"lat": ("latency", "us one way"), "bw": ("bandwidth of tagged messages", "MB/s"),
              "write": ("bandwidth of writes", "MB/s"), "read": ("bandwidth of reads", "MB/s")}
    for kind, (title, axis) in charts.items():
        curves = curves_of(results, kind)
        if not curves:
            continue
        script = ("set logscale xy\nset logscale x 2\nset format x '%.0b%B'\n"
                  "set xlabel 'bytes'\nplot " +
                  ", ".join(f"'-' title '{name}' with linespoints" for name in curves) + "\n")
        for points in curves.values():
            script += "\n".join(f"{x} {y}" for x, y in sorted(points)) + "\ne\n"
        draw(out, kind, title, axis, script)


def draw_bars(results, out, nics):
    """Each metric of the back ends, of the bare paths under them, and of what stands beside, as SVG."""
    for metric, unit in results.values:
        rows = [(nic, results.median(metric, f"uet {nic}"), bare_path(results, metric, nic))
                for nic in nics]
        rows += [(name, results.median(metric, name), None) for name in BESIDE_NICS]
        bars = ["\n".join(f'"{row[0]}" {row[which] or 0}' for row in rows) for which in (1, 2)]
        script = ("set style data histograms\nset style fill solid\nset xtics rotate by -40\n"
                  "set yrange [0:*]\nplot '-' using 2:xtic(1) title 'measured', "
                  "'-' using 2:xtic(1) title 'bare path'\n" + "".join(f"{b}\ne\n" for b in bars))
        draw(out, "nic-" + metric.replace(" ", "-"), metric, unit, script)
