# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Measurements between the hosts of test/nic/in_network, which runs scripts/bench again inside."""
import json
import os
import subprocess

from parts.results import Results
from parts.setup import ROOT, Setup, fail

INSIDE = {}  # name of a measurement -> function(results, argument, quick), run inside


def inside(function):
    """Marks a function that runs in the network, by its name."""
    INSIDE[function.__name__] = function
    return function


def measure_in_network(results, function, argument, quick, hosts="udp,udp", **variables):
    """Runs `function(results, argument, quick)` in a network of its own, and adds its results.
    `variables`: those of in_network."""
    fake_verbs = os.path.join(Setup.build, "test", "nic", "fake_verbs")
    libraries = ":".join(filter(None, [fake_verbs, os.environ.get("LD_LIBRARY_PATH")]))
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries,
                   "UET_IMPAIR": os.path.join(Setup.build, "test", "impair", "uet_impair"), **variables}
    command = [os.path.join(ROOT, "test", "nic", "in_network"), hosts,
               os.path.join(ROOT, "scripts", "bench"), "--inside", f"{function.__name__}={argument}",
               "--build", Setup.build]
    for directory in Setup.libfabrics:
        command += ["--libfabric", directory]
    done = subprocess.run(command + ["--quick"] * quick, env=environment, capture_output=True,
                          text=True, check=False)
    if done.returncode == 77:
        fail(done.stdout.strip(), "run as root")
    values = "[]"
    for line in done.stdout.splitlines():
        if line.startswith("["):
            values = line
        elif not line.startswith("uet_impair: "):
            print(line)
    if done.returncode != 0:
        print("\n".join("      " + line for line in done.stderr.splitlines()[-3:]))
    for row in json.loads(values):
        results.add(*row)


def run_inside(text, quick):
    """What --inside asks for. One line is for measure_in_network: the results, as JSON."""
    name, _, argument = text.partition("=")
    results = Results()
    INSIDE[name](results, argument, quick)
    print(json.dumps(list(results.rows())))
