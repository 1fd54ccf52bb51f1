// strips.cu: strips of rows, each a launch of one block on a stream of its own, a row handed on (Szafarczyk).
//
// Work:    thread = one row of a strip, block = the strip, all columns, one barrier per element diagonal; grid = one
//          block. Concurrent launches are the parallelism between strips.
// Traffic: 2 bits of direction per cell (4 with affine gaps) in global memory, and 8 to 16 bytes per column and strip
//          for the row between strips; in shared memory one score from a table, and H (and F) of the row above. 28 to
//          32 registers (sm_90, NVRTC 13.5, November 2026).
// Limits:  a strip's kernel waits for the strip before, so that strips must be launched in order and no more than are
//          resident may be under way; shared memory for two diagonals and the table.
// Why:     the directions of a strip leave for the host while others compute: the pair may exceed the GPU's memory.
//          SWSEARCH_CHUNK 1 is the paper's hand-over, column by column; 32 asks once for what a warp can load.
#include "study.cuh"

constexpr int kChunk = SWSEARCH_CHUNK;
constexpr int kLetters = 32;
constexpr int kBits = kAffine ? 4 : 2;  // with linear gaps where a gap goes on is seen from the cells it runs through
constexpr int kWordCells = 32 / kBits;
constexpr u32 kMask = (1u << kBits) - 1;
static_assert(kChunk == 1 || kChunk == kWarpLanes, "a column, or one a lane");
static_assert(kDirections, "directions are what a strip is for");

extern "C" __global__ void __launch_bounds__(1024)
    study_strip(const u8* __restrict__ query, const u8* __restrict__ subject, const signed char* __restrict__ table,
                int first_row, int rows, int columns, int strip, int gap_open, int gap_extend, u32 one,
                int* row_h, int* row_f,            // (columns): the row between strips, written over by every strip
                int* progress,                     // (strips): columns that a strip has handed on
                u32* __restrict__ directions,      // (rows, words): of this strip
                int* __restrict__ best_scores,     // (all rows): local mode
                int* __restrict__ best_columns,    // (all rows)
                int* __restrict__ scores) {        // (all rows, columns) if kKeep
  extern __shared__ __align__(16) u32 shared_words[];
  const int t = threadIdx.x, n_threads = blockDim.x, lane = t % kWarpLanes;
  u32 *const h = shared_words, *const f = h + 2 * n_threads;  // of this diagonal and the last one, in turn
  int* const pair_scores = reinterpret_cast<int*>(f + 2 * n_threads);
  for (int k = t; k < kLetters * kLetters; k += n_threads) pair_scores[k] = table[k];
  __syncthreads();

  const Costs costs = make_costs(gap_open, gap_extend, one);
  const Boundary<kMode> boundary{0, gap_open, gap_extend};
  const int row = first_row + t, n_words = (columns + kWordCells - 1) / kWordCells;
  const int* const scores_of_letter = pair_scores + (t < rows ? query[row] : 0) * kLetters;
  u32 corner = (u32)boundary.at(row), beside = (u32)boundary.at(row + 1), e = (u32)boundary.gap_at(row + 1);
  u32 incoming_h = 0, incoming_f = 0, word = 0;
  int best = 0, best_column = 0;

  for (int d = 0; d < columns + rows - 1; ++d) {
    const int now = (d & 1) * n_threads, before = n_threads - now;
    u32 above = 0, f_in = 0;
    if (t < kWarpLanes) {
      if (d % kChunk == 0 && d < columns) {  // the strip before has these columns, or will have them
        const int mine = d + (kChunk == 1 ? 0 : lane);
        if (strip == 0) {
          incoming_h = (u32)boundary.at(mine + 1);
          incoming_f = (u32)boundary.gap_at(mine + 1);
        } else {
          const int wanted = min(d + kChunk, columns);
          if (lane == 0)
            while (load_acquire(progress + strip - 1) < wanted) {
            }
          __syncwarp();
          if (mine < columns) {
            incoming_h = (u32)row_h[mine];
            if constexpr (kAffine) incoming_f = (u32)row_f[mine];
          }
        }
      }
      above = __shfl_sync(kAllLanes, incoming_h, d % kChunk);
      f_in = __shfl_sync(kAllLanes, incoming_f, d % kChunk);
    }
    const int column = d - t;
    if (t < rows && column >= 0 && column < columns) {
      if (t > 0) {
        above = h[before + t - 1];
        if constexpr (kAffine) f_in = f[before + t - 1];
      }
      const u32 score = (u32)scores_of_letter[subject[column]];
      const Cell made = advance(corner, score, entering(beside, e, costs), entering(above, f_in, costs), costs);
      corner = above;
      beside = made.h;
      e = made.e;
      h[now + t] = made.h;
      if constexpr (kAffine) f[now + t] = made.f;
      word |= (made.direction & kMask) << (column % kWordCells * kBits);
      if (column % kWordCells == kWordCells - 1 || column == columns - 1) {
        directions[(u64)t * n_words + column / kWordCells] = word;
        word = 0;
      }
      if constexpr (kKeep) scores[(u64)row * columns + column] = (int)made.h;
      if constexpr (kMode == kLocal) {
        if ((int)made.h > best) {
          best = (int)made.h;
          best_column = column;
        }
      }
      if (t == rows - 1) {  // this column was read by this strip's first row long before, or by this thread
        row_h[column] = (int)made.h;
        if constexpr (kAffine) row_f[column] = (int)made.f;
        if ((column + 1) % kChunk == 0 || column == columns - 1) store_release(progress + strip, column + 1);
      }
    }
    __syncthreads();
  }
  if (kMode == kLocal && t < rows) {
    best_scores[row] = best;
    best_columns[row] = best_column;
  }
}
