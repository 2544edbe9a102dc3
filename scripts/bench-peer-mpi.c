/* The all-reduce of Open MPI, as scripts/bench-collectives measures it: every rank repeats it on the
   same fp32 buffer, in place; rank 0 prints median and best time in seconds, and its CPU time.
   Usage: mpirun -np N bench-peer-mpi BYTES SECONDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 3) return 2;
  const int count = (int)(atoll(argv[1]) / 4);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float* data = calloc((size_t)count + 1, sizeof *data);
  double begin = 0;
  for (int i = 0; i < 4; ++i) {
    begin = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  double wanted = atof(argv[2]) / (MPI_Wtime() - begin);
  MPI_Bcast(&wanted, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  const int repetitions = wanted < 3 ? 3 : wanted > 1e6 ? 1000000 : (int)wanted;
  double* times = malloc((size_t)repetitions * sizeof *times);
  const double cpu = cpu_seconds();
  for (int i = 0; i < repetitions; ++i) {
    const double start = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    times[i] = MPI_Wtime() - start;
  }
  const double cpu_each = (cpu_seconds() - cpu) / repetitions;
  qsort(times, (size_t)repetitions, sizeof *times, by_value);
  if (rank == 0)
    printf("{\"median_s\": %.9f, \"best_s\": %.9f, \"cpu_s\": %.9f}\n", times[repetitions / 2],
           times[0], cpu_each);
  free(times);
  free(data);
  MPI_Finalize();
  return 0;
}
