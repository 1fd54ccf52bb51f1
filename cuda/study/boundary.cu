// boundary.cu: row 0 and column 0 of the matrices, by a launch of its own before all others, as the papers have it.
//
// Work:    thread = place t of row 0 and of column 0.
// Traffic: two writes per thread and matrix.
// Limits:  none.
// Why:     every kernel that keeps its matrix in global memory then treats all cells alike.
#include "study.cuh"

extern "C" __global__ void study_boundary(STUDY_PAIR_PARAMETERS, int* h, int* e, int* f, u8* directions) {
  const Problem pair = STUDY_PAIR;
  const Matrix matrix{h, e, f, directions, Layout(pair)};
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t <= max(pair.rows, pair.columns)) matrix.set_boundary(pair, t);
}
