// element_diagonals.cu: one element diagonal after the other, the kernel chosen by its length (Huynh et al.).
//
// Work:    thread = the cells of a diagonal that are a stride apart; study_warp: one warp takes all diagonals of up to
//          32 cells at either end; study_block: one block those of up to 1,024; study_grid: one launch per
//          diagonal, one thread per cell.
// Traffic: per cell one write and three reads of H in global memory (with affine gaps E and F too), neighbours on a
//          diagonal a row apart, so that every access of a warp takes 32 sectors. 24 to 28 registers (sm_90, NVRTC
//          13.5, November 2026).
// Limits:  the whole matrix in GPU memory.
// Why:     the paper's own layout. rows + columns - 1 launches at the most, each waiting for the one before.
#include "study.cuh"

extern "C" __global__ void __launch_bounds__(kWarpLanes)
    study_warp(STUDY_PAIR_PARAMETERS, int* h, int* e, int* f, int first_diagonal, int last_diagonal) {
  const Problem pair = STUDY_PAIR;
  const Matrix matrix{h, e, f, nullptr, Layout(pair)};
  const int lane = threadIdx.x;
  for (int d = first_diagonal; d <= last_diagonal; ++d) {
    for (int i = first_row(pair, d) + lane; i <= last_row(pair, d); i += kWarpLanes) matrix.update(pair, i, d - i);
    __syncwarp();  // orders the lanes' memory accesses, which running in step does not
  }
}

extern "C" __global__ void __launch_bounds__(1024)
    study_block(STUDY_PAIR_PARAMETERS, int* h, int* e, int* f, int first_diagonal, int last_diagonal) {
  const Problem pair = STUDY_PAIR;
  const Matrix matrix{h, e, f, nullptr, Layout(pair)};
  const int t = threadIdx.x, n_threads = blockDim.x;
  for (int d = first_diagonal; d <= last_diagonal; ++d) {
    for (int i = first_row(pair, d) + t; i <= last_row(pair, d); i += n_threads) matrix.update(pair, i, d - i);
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(1024)
    study_grid(STUDY_PAIR_PARAMETERS, int* h, int* e, int* f, int diagonal) {
  const Problem pair = STUDY_PAIR;
  const Matrix matrix{h, e, f, nullptr, Layout(pair)};
  const int i = first_row(pair, diagonal) + (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i <= last_row(pair, diagonal)) matrix.update(pair, i, diagonal - i);
}
