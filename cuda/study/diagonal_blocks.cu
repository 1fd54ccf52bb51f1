// diagonal_blocks.cu: tiles of the matrix along block diagonals, one launch per block diagonal (Huynh et al.).
//
// Work:    thread = one cell of a tile, block = a tile of SWSEARCH_ROWS x SWSEARCH_COLUMNS cells, grid = the tiles of
//          one block diagonal; inside a tile one barrier per element diagonal.
// Traffic: per cell, in global memory: one write and three reads of H (with affine gaps E and F too); with
//          SWSEARCH_SHARED the reads are of the tile's border only, and each matrix is written once, whole rows at a
//          time. 26 to 32 registers (sm_90, NVRTC 13.5, November 2026).
// Limits:  at most 1,024 cells per tile; the whole matrix in GPU memory.
// Why:     the paper's own layout, kept as it is: of the threads of a tile only those on the diagonal work, so that
//          small tiles, with more of them at once, should win.
#include "study.cuh"

constexpr int kRows = SWSEARCH_ROWS, kColumns = SWSEARCH_COLUMNS;
constexpr bool kShared = SWSEARCH_SHARED != 0;
constexpr int kThreads = kRows * kColumns;
constexpr int kPitch = kColumns + 1, kCells = (kRows + 1) * kPitch;  // with the border above and to the left
static_assert(kThreads <= 1024, "a thread a cell");

// Everything of a tile stands in shared memory until its last diagonal is done.
__device__ __forceinline__ void fill_tile(const Problem& pair, const Matrix& matrix, int top, int left, int row,
                                          int column, bool inside) {
  extern __shared__ __align__(16) u32 shared_words[];
  u32 *const h = shared_words, *const e = h + kCells, *const f = e + (kAffine ? kCells : 0);
  u8* const letters = reinterpret_cast<u8*>(f + (kAffine ? kCells : 0));
  const int t = threadIdx.x;
  // the border: row `top` and column `left` of the matrix, which neighbouring tiles or the boundary have filled
  for (int c = t; c <= kColumns; c += kThreads) {
    if (left + c > pair.columns) break;
    const u64 place = matrix.layout.at(top, left + c);
    h[c] = (u32)matrix.h[place];
    if constexpr (kAffine) f[c] = (u32)matrix.f[place];
    if (c > 0) letters[kRows + c - 1] = pair.subject[left + c - 1];
  }
  for (int r = t; r <= kRows; r += kThreads) {
    if (top + r > pair.rows) break;
    const u64 place = matrix.layout.at(top + r, left);
    h[r * kPitch] = (u32)matrix.h[place];
    if constexpr (kAffine) e[r * kPitch] = (u32)matrix.e[place];
    if (r > 0) letters[r - 1] = pair.query[top + r - 1];
  }
  Cell made{};
  const int place = (row + 1) * kPitch + column + 1;
  for (int step = 0; step < kRows + kColumns - 1; ++step) {
    __syncthreads();
    if (row + column != step || !inside) continue;
    const u32 e_in = kAffine ? e[place - 1] : entering(h[place - 1], 0u, pair.costs);
    const u32 f_in = kAffine ? f[place - kPitch] : entering(h[place - kPitch], 0u, pair.costs);
    made = advance(h[place - kPitch - 1], pair.score(letters[row], letters[kRows + column]), e_in, f_in, pair.costs);
    h[place] = made.h;
    if constexpr (kAffine) {
      e[place] = made.e;
      f[place] = made.f;
    }
  }
  if (inside) matrix.put(pair, top + row + 1, left + column + 1, made);  // neighbours write neighbouring words
}

extern "C" __global__ void __launch_bounds__(kThreads)
    study_diagonal_blocks(STUDY_PAIR_PARAMETERS, int* h, int* e, int* f, int block_diagonal, int first_block_row) {
  const Problem pair = STUDY_PAIR;
  const Matrix matrix{h, e, f, nullptr, Layout(pair)};
  const int block_row = first_block_row + (int)blockIdx.x;
  const int top = block_row * kRows, left = (block_diagonal - block_row) * kColumns;
  const int row = (int)threadIdx.x / kColumns, column = (int)threadIdx.x % kColumns;
  const bool inside = top + row < pair.rows && left + column < pair.columns;
  if constexpr (kShared) {
    fill_tile(pair, matrix, top, left, row, column, inside);
  } else {
    for (int step = 0; step < kRows + kColumns - 1; ++step) {
      if (row + column == step && inside) matrix.update(pair, top + row + 1, left + column + 1);
      __syncthreads();
    }
  }
}
