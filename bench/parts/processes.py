# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The processes of a measurement, and the hosts that they run on."""
import contextlib
import os
import subprocess
import time

from parts.setup import Setup, example, note

LIMIT_S = 120


def listens(port, process="self"):
    """Anybody in the network name space of the process."""
    wanted = f":{port:04X} "
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{process}/net/{table}", encoding="ascii") as lines:
            if any(wanted in line[:40] + " " and " 0A " in line for line in lines):
                return True
    return False


class Place:
    """Where the two processes of a measurement are, the first of which serves."""
    def __init__(self, interface, addresses, prefixes):
        self.interface, self.addresses, self.prefixes = interface, addresses, prefixes


LOOPBACK = Place("lo", ["127.0.0.1", "127.0.0.2"], [[], []])
# As test/nic/in_network makes it.
TWO_HOSTS = Place("eth0", ["10.85.0.1", "10.85.0.2"],
                  [["nsenter", f"--net=/run/netns/host-{number}"] for number in (1, 2)])


class Ports:
    next = 21000 + os.getpid() % 5000

    @classmethod
    def free(cls):
        cls.next += 1
        while listens(cls.next):
            cls.next += 1
        return cls.next


def environment_of(place, more):
    return {**os.environ, "FI_PROVIDER_PATH": os.path.join(Setup.build, "prov", "uet"),
            "FI_UET_IFACE": place.interface, "FI_TCP_IFACE": place.interface,
            "FI_UDP_IFACE": place.interface, "UCX_TLS": "tcp", "UCX_NET_DEVICES": place.interface,
            "UCX_WARN_UNUSED_ENV_VARS": "n", **more}


def wait_for_listener(process, port):
    """Until it listens, or has ended, or for 4 s."""
    for _ in range(200):
        if process.poll() is not None or listens(port, process.pid):
            break
        time.sleep(0.02)


def end_all(processes):
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()


@contextlib.contextmanager
def load(provider, environment, megabytes, place):
    """While a pair of processes sends so many MB/s from the second host to the first."""
    port = Ports.free()
    command = [example("uet_bench"), "--provider", provider, "--port", str(port), "--plan",
               "bw:65536:1000000000:8", "--tagged", "--sleep", "--megabytes", str(megabytes)]
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL,
               "env": environment_of(place, {"FI_PROVIDER": provider.split(";")[0], **environment})}
    processes = [subprocess.Popen(place.prefixes[0] + command + ["--server"], **options)]
    try:
        wait_for_listener(processes[0], port)
        processes.append(subprocess.Popen(
            place.prefixes[1] + command + ["--client", place.addresses[0]], **options))
        time.sleep(0.5)
        yield
        if any(process.poll() is not None for process in processes):
            note(f"the load has ended before its time: {' '.join(command)}")
    finally:
        end_all(processes)


def run_all(server, clients, environment, port=None, place=LOOPBACK):
    """The output of the server and of all clients; None if one of them fails."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True,
               "env": environment_of(place, environment)}
    server = place.prefixes[0] + server
    clients = [place.prefixes[1] + client for client in clients]
    processes = [subprocess.Popen(server, **options)]
    try:
        if port is None:
            time.sleep(0.2)
        else:
            wait_for_listener(processes[0], port)
        processes += [subprocess.Popen(client, **options) for client in clients]
        end = time.monotonic() + LIMIT_S
        outputs = [p.communicate(timeout=max(1, end - time.monotonic()))[0]
                   for p in reversed(processes)]
    except subprocess.TimeoutExpired:
        note(f"no end within {LIMIT_S} s: {' '.join(server)}")
        return None
    finally:
        end_all(processes)
    if any(process.returncode != 0 for process in processes):
        note(f"failed: {' '.join(server)}")
        for output in outputs:
            print("\n".join("      " + line for line in output.splitlines()[-3:]))
        return None
    return outputs
