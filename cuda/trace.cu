// trace: the way back through one rectangle whose directions pair.cu wrote.
// Work:    one block of one warp.
// Traffic: a kilobyte read for about 32 steps; a word written for each run of equal operations.
// Limits:  none.
// Why:     a step depends on the last one; fetching four groups of eight rows by 32 columns at a time makes it a
//          shared memory read instead of a round trip to memory.
#include "trace.cuh"

extern "C" __global__ void __launch_bounds__(32, 1) swsearch_trace(
    const u32* __restrict__ directions, int n, int row, int column, u32 state, u32* runs,
    int* result) {  // number of runs, then row, column and state of where it ended
  extern __shared__ __align__(16) u32 shared_words[];
  Runs found{runs, 0, kStop, 0};
  const Position end = trace(directions, n, Position{row, column, state}, found, shared_words);
  found.flush();
  if (threadIdx.x == 0) result[0] = found.n, result[1] = end.row, result[2] = end.column, result[3] = (int)end.state;
}
