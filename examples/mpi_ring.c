// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An MPI program to try a network with: passes messages of 1 byte to 4 MiB around a ring of all
// ranks and checks every byte. Ends with status 1 if one is wrong.
//
// Use: mpicc mpi_ring.c -o mpi_ring && mpirun -n 4 ./mpi_ring
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kMaxBytes = 4 << 20 };

static unsigned char byte_at(int origin, int bytes, int i) {
  return (unsigned char)(origin * 31 + bytes + i);
}

int main(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  unsigned char* out = malloc(kMaxBytes);
  unsigned char* in = malloc(kMaxBytes);
  if (out == NULL || in == NULL) MPI_Abort(MPI_COMM_WORLD, 1);

  int wrong = 0;
  const int next = (rank + 1) % ranks;
  const int previous = (rank + ranks - 1) % ranks;
  const double start_s = MPI_Wtime();
  for (int bytes = 1; bytes <= kMaxBytes; bytes *= 4) {
    for (int i = 0; i < bytes; ++i) out[i] = byte_at(rank, bytes, i);
    for (int step = 1; step <= ranks; ++step) {
      MPI_Sendrecv(out, bytes, MPI_BYTE, next, step, in, bytes, MPI_BYTE, previous, step,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      const int origin = (rank + ranks * 2 - step) % ranks;
      for (int i = 0; i < bytes; ++i) wrong += in[i] != byte_at(origin, bytes, i);
      unsigned char* const swap = out;
      out = in;
      in = swap;
    }
  }
  int all_wrong = 0;
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("mpi_ring: %d ranks, 1 byte to %d MiB, %d wrong bytes, %.2f s\n", ranks, kMaxBytes >> 20,
           all_wrong, MPI_Wtime() - start_s);
  }
  free(out);
  free(in);
  MPI_Finalize();
  return all_wrong != 0;
}
