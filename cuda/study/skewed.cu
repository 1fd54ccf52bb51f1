// skewed.cu: the skewed iteration space, diagonal by diagonal, with a launch or a grid barrier between (Patel et al.).
//
// Work:    thread = cells of a diagonal a grid's stride apart; with SWSEARCH_SHARED warp = a tile of 32 x 32 cells,
//          lane = its row, and the diagonals are those of tiles. study_launch: grid = one diagonal; study_barrier:
//          grid = the blocks that are resident, for all diagonals.
// Traffic: per cell one write and three reads of H in global memory (with affine gaps E and F too), and one byte of
//          direction; with SWSEARCH_SHARED the reads are of a tile's border only and all writes whole rows.
//          SWSEARCH_SKEWED stores the diagonals as rows, so that a warp's accesses are one piece. 28 to 32
//          registers, with tiles 44 to 64 (sm_90, NVRTC 13.5, November 2026).
// Limits:  no more blocks than are resident at once, or the barrier never ends; the whole matrix in GPU memory.
// Why:     the papers' own layouts; the skewed storage is ours, because they name uncoalesced access as what is slow.
#include "study.cuh"

constexpr bool kShared = SWSEARCH_SHARED != 0;
constexpr bool kLockFree = SWSEARCH_LOCK_FREE != 0;
constexpr int kTile = kWarpLanes;
constexpr int kPitch = kTile + 2;  // lanes are kPitch - 1 words apart, an odd number, so that no banks collide
// H with its border, F of a row, directions
constexpr int kTileWords = (kTile + 1) * kPitch + kTile + kTile * kTile / 4;

#define STUDY_MATRIX_PARAMETERS int *h, int *e, int *f, u8 *directions
#define STUDY_MATRIX \
  Matrix { h, e, f, directions, Layout(pair) }

// Wait until every block of the grid is here for the n-th time, n counted from 1.
// Lock-based: all add to one counter, whose goal grows, so that nothing has to be reset. Lock-free: each block raises
// a flag of its own, block 0 waits for all of them and then raises each block's other flag; nothing is atomic.
__device__ __forceinline__ void grid_barrier(int* flags, int n) {
  const int n_blocks = gridDim.x, block = blockIdx.x, t = threadIdx.x;
  __syncthreads();  // the block's writes come before thread 0's release
  if constexpr (kLockFree) {
    int *const here = flags, *const onward = flags + n_blocks;
    if (t == 0) store_release(here + block, n);
    if (block == 0) {
      for (int other = t; other < n_blocks; other += (int)blockDim.x)
        while (load_acquire(here + other) < n) {
        }
      __syncthreads();
      __threadfence();  // what other threads of this block acquired is now released to the flags' readers
      for (int other = t; other < n_blocks; other += (int)blockDim.x) store_release(onward + other, n);
    }
    if (t == 0)
      while (load_acquire(onward + block) < n) {
      }
  } else if (t == 0) {
    __threadfence();
    atomicAdd(flags, 1);
    while (load_acquire(flags) < n * n_blocks) {
    }
  }
  __syncthreads();
}

// The part of element diagonal d that the grid's thread t of n takes.
__device__ __forceinline__ void fill_elements(const Problem& pair, const Matrix& matrix, int d, int t, int n) {
  for (int i = first_row(pair, d) + t; i <= last_row(pair, d); i += n) matrix.update(pair, i, d - i);
}

// One tile: lane l is row l, one column behind lane l - 1. H in shared memory, E in the lane's register, F of the row
// above in one shared row; a lane reads its neighbour's column two steps after it was written.
__device__ __forceinline__ void fill_tile(const Problem& pair, const Matrix& matrix, int top, int left, int lane,
                                          u32* h, u32* f, u8* directions) {
  const int n_rows = min(kTile, pair.rows - top), n_columns = min(kTile, pair.columns - left);
  u32 e = 0;
  u8 letter = 0;
  if (lane < n_columns) {
    const u64 above = matrix.layout.at(top, left + lane + 1);
    h[lane + 1] = (u32)matrix.h[above];
    f[lane] = (u32)matrix.f_at(above);
  }
  if (lane < n_rows) {
    const u64 beside = matrix.layout.at(top + lane + 1, left);
    h[(lane + 1) * kPitch] = (u32)matrix.h[beside];
    e = (u32)matrix.e_at(beside);
    letter = pair.query[top + lane];
  }
  if (lane == 0) h[0] = (u32)matrix.h[matrix.layout.at(top, left)];
  __syncwarp();
  for (int step = 0; step < n_rows + n_columns - 1; ++step) {
    const int column = step - lane;
    if (lane < n_rows && column >= 0 && column < n_columns) {
      u32* const here = h + (lane + 1) * kPitch + column + 1;
      const u32 e_in = entering(here[-1], e, pair.costs), f_in = entering(here[-kPitch], f[column], pair.costs);
      const u32 score = pair.score(letter, pair.subject[left + column]);
      const Cell made = advance(here[-kPitch - 1], score, e_in, f_in, pair.costs);
      *here = made.h;
      e = made.e;
      f[column] = made.f;  // lane + 1 reads it in the next step
      if constexpr (kDirections) directions[lane * kTile + column] = (u8)made.direction;
      if constexpr (kAffine) {  // only the borders of E and F are read again
        if (column == n_columns - 1) matrix.e[matrix.layout.at(top + lane + 1, left + column + 1)] = (int)made.e;
        if (lane == n_rows - 1) matrix.f[matrix.layout.at(top + lane + 1, left + column + 1)] = (int)made.f;
      }
    }
    __syncwarp();
  }
  if (lane < n_columns) {
    for (int row = 0; row < n_rows; ++row) {
      matrix.h[matrix.layout.at(top + row + 1, left + lane + 1)] = (int)h[(row + 1) * kPitch + lane + 1];
      if constexpr (kDirections)
        matrix.directions[(u64)(top + row + 1) * (pair.columns + 1) + left + lane + 1] = directions[row * kTile + lane];
    }
  }
  __syncwarp();  // the warp's next tile takes the same words
}

// The tiles of tile diagonal d that warp w of n takes.
__device__ __forceinline__ void fill_tiles(const Problem& pair, const Matrix& matrix, int d, int w, int n) {
  extern __shared__ __align__(16) u32 shared_words[];
  u32* const h = shared_words + (threadIdx.x / kWarpLanes) * kTileWords;
  u32* const f = h + (kTile + 1) * kPitch;
  const int n_tile_rows = (pair.rows + kTile - 1) / kTile, n_tile_columns = (pair.columns + kTile - 1) / kTile;
  const int first = max(0, d - n_tile_columns + 1), last = min(n_tile_rows - 1, d);
  for (int row = first + w; row <= last; row += n)
    fill_tile(pair, matrix, row * kTile, (d - row) * kTile, threadIdx.x % kWarpLanes, h, f,
              reinterpret_cast<u8*>(f + kTile));
}

__device__ __forceinline__ void fill_diagonal(const Problem& pair, const Matrix& matrix, int d) {
  const int t = (int)(blockIdx.x * blockDim.x + threadIdx.x), n = (int)(gridDim.x * blockDim.x);
  if constexpr (kShared) {
    fill_tiles(pair, matrix, d, t / kWarpLanes, n / kWarpLanes);
  } else {
    fill_elements(pair, matrix, d, t, n);
  }
}

// Element diagonals count from 2 (i + j), tile diagonals from 0.
extern "C" __global__ void __launch_bounds__(1024)
    study_launch(STUDY_PAIR_PARAMETERS, STUDY_MATRIX_PARAMETERS, int diagonal) {
  const Problem pair = STUDY_PAIR;
  fill_diagonal(pair, STUDY_MATRIX, diagonal);
}

extern "C" __global__ void __launch_bounds__(1024)
    study_barrier(STUDY_PAIR_PARAMETERS, STUDY_MATRIX_PARAMETERS, int first_diagonal, int last_diagonal, int* flags) {
  const Problem pair = STUDY_PAIR;
  int n = 0;
  for (int d = first_diagonal; d <= last_diagonal; ++d) {
    fill_diagonal(pair, STUDY_MATRIX, d);
    if (d < last_diagonal) grid_barrier(flags, ++n);
  }
}
