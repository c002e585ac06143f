/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How long MPI_Allreduce of 8 bytes and MPI_Alltoall of 64 KiB for each rank take, for
 * scripts/bench, after 100 calls: by then memory that processes share has been touched.
 * Prints "result: MICROSECONDS us NAME BYTES" for each.
 * Use: mpirun ... collective_times ROUNDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kAlltoallBytes = 64 << 10 };

static double in;
static double out;
static char* from;
static char* to;

static void allreduce(void) {
  MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoall(void) {
  MPI_Alltoall(from, kAlltoallBytes, MPI_CHAR, to, kAlltoallBytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void measure(const char* name, int bytes, int rounds, void (*collective)(void)) {
  enum { kWarmUp = 100 };
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < kWarmUp; ++i) collective();
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < rounds; ++i) collective();
  const double seconds = MPI_Wtime() - start;
  if (rank == 0) printf("result: %.3f us %s %d\n", seconds / rounds * 1e6, name, bytes);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int rounds = argc > 1 ? atoi(argv[1]) : 1000;
  from = calloc((size_t)ranks, kAlltoallBytes);
  to = calloc((size_t)ranks, kAlltoallBytes);
  measure("allreduce", 8, rounds, allreduce);
  measure("alltoall", kAlltoallBytes, rounds, alltoall);
  free(from);
  free(to);
  MPI_Finalize();
  return 0;
}
