# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Windows: put, get, accumulate, fetch-and-op by fences, locks and post-start-complete-wait.

Not MPI_Compare_and_swap: it crashes inside btl/ofi of Open MPI 4.1.4, over any provider."""

from mpi4py import MPI

from patterns import RANK, RANKS, WORLD, numbers, require, run

NEXT = (RANK + 1) % RANKS
PREVIOUS = (RANK - 1) % RANKS
COUNT = 20_000
WORD = 8


def window_of(count):
    window = MPI.Win.Allocate(count * WORD, WORD, comm=WORLD)
    memory = memoryview(window).cast("B").cast("q")
    for i in range(count):
        memory[i] = 0
    WORLD.Barrier()
    return window, memory


def put_and_get_with_fences():
    window, memory = window_of(COUNT * RANKS)
    mine = numbers(COUNT, RANK * COUNT)  # mpi4py does not hold what is put until the next fence
    window.Fence()
    for target in range(RANKS):
        window.Put(mine, target, RANK * COUNT)
    window.Fence()
    require(memory.tolist() == list(range(COUNT * RANKS)), "what all put")
    got = numbers(COUNT, 0, 0)
    window.Get(got, NEXT, PREVIOUS * COUNT)
    window.Fence()
    require(got == numbers(COUNT, PREVIOUS * COUNT), "what was got")
    window.Free()


def accumulate():
    window, memory = window_of(1000)
    mine = numbers(1000)
    window.Fence()
    for _ in range(10):
        window.Accumulate(mine, 0, 0, MPI.SUM)
    window.Fence()
    if RANK == 0:
        require(memory.tolist() == list(range(0, 10_000 * RANKS, 10 * RANKS)), "sums")
    window.Free()


def locked_counters():
    """Every rank draws numbers from one counter: each number is drawn once."""
    window, _ = window_of(2)
    drawn = []
    one, before = numbers(1, 1), numbers(1, 0)
    for _ in range(50):
        window.Lock(0, MPI.LOCK_SHARED)
        window.Fetch_and_op(one, before, 0, 0, MPI.SUM)
        window.Unlock(0)
        drawn.append(before[0])
    everything = sorted(sum(WORLD.allgather(drawn), []))
    require(everything == list(range(50 * RANKS)), "Fetch_and_op")
    for _ in range(20):  # what is read and written under an exclusive lock is not torn
        value = numbers(1, 0)
        window.Lock(0, MPI.LOCK_EXCLUSIVE)
        window.Get(value, 0, 1)
        window.Flush(0)
        value[0] += 1
        window.Put(value, 0, 1)
        window.Unlock(0)
    WORLD.Barrier()
    value = numbers(1, 0)
    window.Lock(0, MPI.LOCK_SHARED)
    window.Get(value, 0, 1)
    window.Unlock(0)
    require(value[0] == 20 * RANKS, f"exclusive locks: {value[0]}")
    window.Free()


def post_start_complete_wait():
    window, memory = window_of(COUNT)
    world = WORLD.Get_group()
    mine = numbers(COUNT, RANK)
    window.Post(world.Incl([PREVIOUS]))
    window.Start(world.Incl([NEXT]))
    window.Put(mine, NEXT, 0)
    window.Complete()
    window.Wait()
    require(memory.tolist() == list(range(PREVIOUS, PREVIOUS + COUNT)), "PSCW")
    window.Free()


def requests_under_lock_all():
    window, memory = window_of(RANKS * 500)
    mine = numbers(500, RANK * 500)
    window.Lock_all()
    requests = [window.Rput(mine, target, RANK * 500) for target in range(RANKS)]
    MPI.Request.Waitall(requests)
    window.Flush_all()
    WORLD.Barrier()
    got = numbers(RANKS * 500, 0, 0)
    window.Rget(got, NEXT, 0).Wait()
    require(got == numbers(RANKS * 500), "Rget of what all Rput")
    window.Unlock_all()
    require(memory.tolist() == list(range(RANKS * 500)), "what all Rput")
    window.Free()


run(put_and_get_with_fences, accumulate, locked_counters, post_start_complete_wait,
    requests_under_lock_all)
