# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""MPI_THREAD_MULTIPLE: four threads of each rank send to and receive from the same threads of all."""

import threading

from mpi4py import MPI

from patterns import RANK, RANKS, WORLD, pattern, require, run

THREADS = 4
ROUNDS = 30


def work(number):
    for round_number in range(ROUNDS):
        size = [0, 50, 4000, 90_000][(round_number + number) % 4]
        to, source = (RANK + number + 1) % RANKS, (RANK - number - 1) % RANKS
        into = bytearray(size)
        receive = WORLD.Irecv(into, source, number)
        WORLD.Send(pattern(size, RANK, number, round_number), to, number)
        receive.Wait()
        require(into == pattern(size, source, number, round_number),
                f"thread {number}, round {round_number}")


def threads_exchange_messages():
    require(MPI.Query_thread() == MPI.THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE is provided")
    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


run(threads_exchange_messages)
