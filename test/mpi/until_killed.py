# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Exchanges messages for ever: what happens to a job when a host dies."""

from patterns import RANK, RANKS, WORLD, pattern

round_number = 0
while True:
    out, into = pattern(20_000, RANK), bytearray(20_000 * RANKS)
    WORLD.Allgather(out, into)
    if RANK == 0 and round_number == 100:
        print("exchanging", flush=True)
    round_number += 1
