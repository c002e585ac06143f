# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Messages between ranks: every kind of send, wildcards and their order, matched probes, persistent
requests, derived datatypes, truncation and cancelling, every byte checked."""

from mpi4py import MPI

from patterns import RANK, RANKS, SIZES, WORLD, numbers, pattern, require, run

NEXT = (RANK + 1) % RANKS
PREVIOUS = (RANK - 1) % RANKS


def sends_of_all_sizes_and_kinds():
    MPI.Attach_buffer(bytearray(2 * SIZES[-1]))
    kinds = {"Isend": WORLD.Isend, "Issend": WORLD.Issend, "Ibsend": WORLD.Ibsend}
    for size in SIZES:
        for tag, (name, send) in enumerate(kinds.items()):
            into = bytearray(b"\xee" * size)
            receive = WORLD.Irecv(into, PREVIOUS, tag)
            sending = send(pattern(size, RANK, tag), NEXT, tag)
            status = MPI.Status()
            receive.Wait(status)
            sending.Wait()
            require(status.Get_count(MPI.BYTE) == size, f"{name}: count of {size} bytes")
            require(into == pattern(size, PREVIOUS, tag), f"{name} of {size} bytes")
    MPI.Detach_buffer()


def ready_sends():
    for size in SIZES:
        into = bytearray(size)
        receive = WORLD.Irecv(into, PREVIOUS, 1)
        WORLD.Barrier()
        WORLD.Rsend(pattern(size, RANK), NEXT, 1)
        receive.Wait()
        require(into == pattern(size, PREVIOUS), f"Rsend of {size} bytes")


def unexpected_in_any_order():
    """All messages are there before the first receive is posted, and are taken from the last one on."""
    sizes = [0, 8, 3000, 20_000, 300_000]
    sending = [WORLD.Isend(pattern(size, RANK, tag), to, tag) for to in range(RANKS) if to != RANK
               for tag, size in enumerate(sizes)]
    WORLD.Barrier()
    for source in reversed(range(RANKS)):
        if source == RANK:
            continue
        for tag in reversed(range(len(sizes))):
            into = bytearray(sizes[tag])
            WORLD.Recv(into, source, tag)
            require(into == pattern(sizes[tag], source, tag), f"unexpected from {source}, tag {tag}")
    MPI.Request.Waitall(sending)


def wildcards_keep_the_order_of_each_sender():
    count = 300
    if RANK != 0:
        sending = [WORLD.Isend(pattern(number % 4 * 2500, RANK, number), 0, number)
                   for number in range(count)]
        MPI.Request.Waitall(sending)
        return
    following = [0] * RANKS
    into = bytearray(10_000)
    for _ in range(count * (RANKS - 1)):
        status = MPI.Status()
        WORLD.Recv(into, MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        source, tag, size = status.Get_source(), status.Get_tag(), status.Get_count(MPI.BYTE)
        require(tag == following[source], f"order of {source}: {tag}, not {following[source]}")
        require(into[:size] == pattern(tag % 4 * 2500, source, tag), f"message {tag} of {source}")
        following[source] += 1


def probes_and_matched_probes():
    for size in SIZES:
        sending = WORLD.Isend(pattern(size, RANK, 5), NEXT, 5)
        status = MPI.Status()
        WORLD.Probe(MPI.ANY_SOURCE, 5, status)
        require(status.Get_count(MPI.BYTE) == size, f"Probe sees {size} bytes")
        message = WORLD.Mprobe(PREVIOUS, 5)
        into = bytearray(size)
        message.Recv(into)
        sending.Wait()
        require(into == pattern(size, PREVIOUS, 5), f"Mprobe and Mrecv of {size} bytes")
    require(not WORLD.Iprobe(MPI.ANY_SOURCE, 999), "Iprobe of what nobody sends")
    require(WORLD.Improbe(MPI.ANY_SOURCE, 999) is None, "Improbe of what nobody sends")


def persistent_requests():
    out, into = pattern(70_000, RANK), bytearray(70_000)
    requests = [WORLD.Recv_init(into, PREVIOUS, 3), WORLD.Send_init(out, NEXT, 3)]
    for round_number in range(10):
        out[:] = pattern(70_000, RANK, round_number)
        MPI.Prequest.Startall(requests)
        MPI.Request.Waitall(requests)
        require(into == pattern(70_000, PREVIOUS, round_number), f"persistent, round {round_number}")
    for request in requests:
        request.Free()


def derived_datatypes():
    """Columns of a matrix go out, rows come in."""
    side = 300
    matrix = numbers(side * side, RANK * 1_000_000)
    column = MPI.INT64_T.Create_vector(side, 1, side).Commit()
    received = numbers(side, 0, 0)
    for number in (0, 17, side - 1):
        sending = WORLD.Isend([memoryview(matrix)[number:], 1, column], NEXT, number)
        WORLD.Recv([received, MPI.INT64_T], PREVIOUS, number)
        sending.Wait()
        require(received == numbers(side, PREVIOUS * 1_000_000 + number, side), f"column {number}")
    column.Free()


def python_objects():
    text = {"rank": RANK, "text": "x" * 100_000, "list": list(range(1000))}
    got = WORLD.sendrecv(text, NEXT, 1, source=PREVIOUS, recvtag=1)
    require(got == {**text, "rank": PREVIOUS}, "a Python object")


def too_long_for_the_receive():
    WORLD.Set_errhandler(MPI.ERRORS_RETURN)
    for size in (100, 20_000, 500_000):
        into = bytearray(b"\x11" * size)
        receive = WORLD.Irecv(memoryview(into)[: size // 2], PREVIOUS, 8)
        WORLD.Barrier()
        sending = WORLD.Isend(bytes(size), NEXT, 8)
        error = MPI.SUCCESS
        try:
            receive.Wait()
        except MPI.Exception as exception:
            error = exception.Get_error_class()
        require(error == MPI.ERR_TRUNCATE, f"{size} bytes into half of that: error class {error}")
        sending.Wait()
        require(into[size // 2:] == b"\x11" * (size - size // 2), "nothing behind the receive")
    WORLD.Set_errhandler(MPI.ERRORS_ARE_FATAL)


def cancelled_receives():
    for _ in range(20):
        receive = WORLD.Irecv(bytearray(10), MPI.ANY_SOURCE, 777)
        receive.Cancel()
        status = MPI.Status()
        receive.Wait(status)
        require(status.Is_cancelled(), "a receive that nobody fills is cancelled")


def many_in_flight():
    count, size = 200, 9000
    into = [bytearray(size) for _ in range(count * RANKS)]
    receiving = [WORLD.Irecv(into[source * count + tag], source, tag)
                 for source in range(RANKS) for tag in range(count)]
    sending = [WORLD.Isend(pattern(size, RANK, to, tag), to, tag)
               for tag in reversed(range(count)) for to in range(RANKS)]
    MPI.Request.Waitall(receiving + sending)
    for source in range(RANKS):
        for tag in range(count):
            require(into[source * count + tag] == pattern(size, source, RANK, tag),
                    f"message {tag} from {source}")


run(sends_of_all_sizes_and_kinds, ready_sends, unexpected_in_any_order,
    wildcards_keep_the_order_of_each_sender, probes_and_matched_probes, persistent_requests,
    derived_datatypes, python_objects, too_long_for_the_receive, cancelled_receives, many_in_flight)
