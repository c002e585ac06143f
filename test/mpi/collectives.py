# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Every collective of MPI-3 over the world, a duplicate and halves of it, results checked."""

from mpi4py import MPI

from patterns import RANK, RANKS, WORLD, numbers, pattern, require, run

COUNTS = [0, 1, 10, 1000, 20_000, 150_000]  # of 64-bit integers
BYTES = [0, 1, 100, 5000, 100_000]


def broadcasts():
    for root in range(RANKS):
        for size in BYTES + [1_500_000]:
            data = pattern(size, root) if RANK == root else bytearray(size)
            WORLD.Bcast(data, root)
            require(data == pattern(size, root), f"Bcast of {size} bytes from {root}")


def reductions():
    for count in COUNTS:
        mine, total = numbers(count, RANK), numbers(count, 0, 0)
        expected = numbers(count, RANKS * (RANKS - 1) // 2, RANKS)
        WORLD.Allreduce(mine, total, MPI.SUM)
        require(total == expected, f"Allreduce of {count}")
        total = numbers(count, 0, 0)
        WORLD.Reduce(mine, total, MPI.SUM, RANKS - 1)
        require(RANK != RANKS - 1 or total == expected, f"Reduce of {count}")
        WORLD.Allreduce(mine, total, MPI.MAX)
        require(total == numbers(count, RANKS - 1), f"Allreduce of {count}, maximum")
        WORLD.Scan(mine, total, MPI.SUM)
        require(total == numbers(count, RANK * (RANK + 1) // 2, RANK + 1), f"Scan of {count}")
        WORLD.Exscan(mine, total, MPI.SUM)
        require(RANK == 0 or total == numbers(count, RANK * (RANK - 1) // 2, RANK),
                f"Exscan of {count}")
        mine, block = numbers(count * RANKS, RANK), numbers(count, 0, 0)
        WORLD.Reduce_scatter_block(mine, block, MPI.SUM)
        first = RANKS * (RANKS - 1) // 2 + RANK * count * RANKS
        require(block == numbers(count, first, RANKS), f"Reduce_scatter_block of {count}")


def gathers_and_scatters():
    for size in BYTES:
        everything = b"".join(pattern(size, rank) for rank in range(RANKS))
        into = bytearray(size * RANKS)
        WORLD.Allgather(pattern(size, RANK), into)
        require(into == everything, f"Allgather of {size} bytes")
        for root in (0, RANKS - 1):
            into = bytearray(size * RANKS)
            WORLD.Gather(pattern(size, RANK), into, root)
            require(RANK != root or into == everything, f"Gather of {size} bytes at {root}")
            part = bytearray(size)
            WORLD.Scatter(everything if RANK == root else None, part, root)
            require(part == pattern(size, RANK), f"Scatter of {size} bytes from {root}")


def of_different_lengths():
    lengths = [1000 * rank + 3 for rank in range(RANKS)]
    into = bytearray(sum(lengths))
    WORLD.Allgatherv(pattern(lengths[RANK], RANK), [into, lengths])
    require(into == b"".join(pattern(length, rank) for rank, length in enumerate(lengths)),
            "Allgatherv")
    out = b"".join(pattern(lengths[RANK], RANK, to) for to in range(RANKS))
    into = bytearray(sum(lengths))
    WORLD.Alltoallv([out, [lengths[RANK]] * RANKS], [into, lengths])
    require(into == b"".join(pattern(length, rank, RANK) for rank, length in enumerate(lengths)),
            "Alltoallv")


def all_to_all():
    for size in BYTES:
        out = b"".join(pattern(size, RANK, to) for to in range(RANKS))
        into = bytearray(size * RANKS)
        WORLD.Alltoall(out, into)
        require(into == b"".join(pattern(size, source, RANK) for source in range(RANKS)),
                f"Alltoall of {size} bytes")


def nonblocking_side_by_side():
    # mpi4py does not hold what is sent until the end of the request.
    mine, one = numbers(5000, RANK), numbers(1, 1)
    total, sum_of_ones = numbers(5000, 0, 0), numbers(1, 0, 0)
    data = pattern(60_000, 7) if RANK == 0 else bytearray(60_000)
    out, into = pattern(3000 * RANKS, RANK), bytearray(3000 * RANKS)
    MPI.Request.Waitall([
        WORLD.Iallreduce(mine, total, MPI.SUM),
        WORLD.Ibcast(data, 0),
        WORLD.Ialltoall(out, into),
        WORLD.Iallreduce(one, sum_of_ones, MPI.SUM),
        WORLD.Ibarrier(),
    ])
    require(total == numbers(5000, RANKS * (RANKS - 1) // 2, RANKS), "Iallreduce")
    require(data == pattern(60_000, 7), "Ibcast")
    require(sum_of_ones[0] == RANKS, "Iallreduce of one")
    for source in range(RANKS):
        require(into[source * 3000:(source + 1) * 3000] ==
                pattern(3000 * RANKS, source)[RANK * 3000:(RANK + 1) * 3000], "Ialltoall")


def communicators():
    for _ in range(10):
        duplicate = WORLD.Dup()
        require(duplicate.allreduce(RANK) == RANKS * (RANKS - 1) // 2, "a duplicate")
        duplicate.Free()
    half = WORLD.Split(RANK % 2, RANK)
    require(half.allreduce(1) == (RANKS + 1 - RANK % 2) // 2, "a half")
    half.Free()
    require(WORLD.allgather({"rank": RANK}) == [{"rank": rank} for rank in range(RANKS)],
            "objects")


run(broadcasts, reductions, gathers_and_scatters, of_different_lengths, all_to_all,
    nonblocking_side_by_side, communicators)
