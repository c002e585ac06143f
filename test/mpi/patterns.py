# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What the MPI programs share: data that tells where it came from, and the end of a program."""

from array import array

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK = WORLD.Get_rank()
RANKS = WORLD.Get_size()

# Around the borders of inject, of one packet, of the eager size and of the largest transfers.
SIZES = [0, 1, 7, 64, 65, 1024, 4095, 4096, 4097, 16384, 65535, 65536, 262144, 1 << 20, 3_000_001]

_CYCLE = bytes((i * 131 + (i >> 8) * 29) & 0xFF for i in range(65521))


def pattern(size, *origin):
    """`size` bytes that differ with every number in `origin`."""
    shift = sum((place + 1) * 7919 * (number + 1) for place, number in enumerate(origin)) % len(_CYCLE)
    cycle = _CYCLE[shift:] + _CYCLE[:shift]
    return bytearray((cycle * (size // len(cycle) + 1))[:size])


def numbers(count, first=0, step=1):
    """`count` 64-bit integers from `first` on."""
    return array("q", range(first, first + count * step, step) if step else [first] * count)


def require(condition, what):
    """Ends the whole job, naming what is wrong, unless `condition` holds."""
    if not condition:
        print(f"rank {RANK} of {RANKS}: wrong: {what}", flush=True)
        WORLD.Abort(1)


def run(*parts):
    """Runs the parts of a program in order, all ranks together, and says that each came to its end."""
    for part in parts:
        WORLD.Barrier()
        start_s = MPI.Wtime()
        part()
        WORLD.Barrier()
        if RANK == 0:
            print(f"ok {part.__name__} ({RANKS} ranks, {MPI.Wtime() - start_s:.2f} s)", flush=True)
