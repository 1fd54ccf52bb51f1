// pairs: many pairs, each aligned by one warp: directions, the end of the alignment and the way back in one go.
// Work:    lane = eight consecutive rows; warp = a pair, strip after strip of 256 rows; block = independent warps;
//          grid = as many warps as there is scratch memory for. Pairs are handed out in order, longest first.
// Traffic: half a byte per cell written, a few kilobytes per pair read on the way back; 16 bytes per column and strip.
// Limits:  32-bit scores; a pair's directions fit a warp's scratch memory.
// Why:     the hits of a search are short: one pair alone cannot fill a GPU, 2,000 at a time can.
#include "trace.cuh"

constexpr int kLetters = SWSEARCH_LETTERS;
constexpr bool kIsLocal = SWSEARCH_LOCAL == 1;
typedef Strip<kDirectionRows, kLetters, kIsLocal, true> PairStrip;

struct Pair {
  unsigned long long query, columns;  // first letter (or line of the table) and first column in the pools
  int rows, n;
};

// Where an alignment that is not local ends: the corner, or the best cell of the ends that are free.
__device__ __forceinline__ Best find_end(const Rectangle& job, const int* last_row, const int* last_column,
                                         bool free_query_end, bool free_subject_end) {
  const int lane = threadIdx.x % kWarpLanes;
  Best best{last_column[job.rows - 1], job.n, job.rows};
  auto look = [&](int score, int column, int row) {
    const Best other{score, column, row};
    if (other.beats(best)) best = other;
  };
  if (free_subject_end) {
    look(job.gap(job.pays_rows, job.rows), 0, job.rows);
    for (int c = lane; c < job.n; c += kWarpLanes) look(last_row[c], c + 1, job.rows);
  }
  if (free_query_end) {
    look(job.gap(job.pays_columns, job.n), job.n, 0);
    for (int r = lane; r < job.rows; r += kWarpLanes) look(last_column[r], job.n, r + 1);
  }
  return best_of_warp(best);
}

extern "C" __global__ void __launch_bounds__(512, 1) swsearch_pairs(
    const unsigned char* __restrict__ queries,  // null where queries are profiles: each row's scores are in the table
    const unsigned short* __restrict__ subjects,
    const Pair* __restrict__ pairs, int n_pairs, const u32* __restrict__ table,
    int free_query_start, int free_query_end, int free_subject_start, int free_subject_end, int open, int extend,
    u32 one, int most_rows, int most_columns,
    int2* boundaries, int* edges, u32* scratch_runs, u32* directions, unsigned long long direction_words,  // of a warp
    int4* results,  // of each pair: score, first row, first column, number of runs; negative: they did not fit
    u32* run_places, u32* runs, u32 most_runs, u32* counters) {  // counters: next pair, runs written
  extern __shared__ __align__(16) u32 shared_words[];
  const int lane = threadIdx.x % kWarpLanes;
  const int warp = __shfl_sync(kAllLanes, (int)(threadIdx.x / kWarpLanes), 0);
  u32* shared = shared_words + warp * (PairStrip::kSharedWords + kTraceWords);
  const size_t place = (size_t)warp * gridDim.x + blockIdx.x;
  int2* boundary = boundaries + place * most_columns;
  int* last_row = edges + place * (most_rows + most_columns);
  int* last_column = last_row + most_columns;
  u32* my_runs = scratch_runs + place * (most_rows + most_columns);
  u32* my_directions = directions + place * direction_words;

  for (;;) {
    u32 index = 0;
    if (lane == 0) index = atomicAdd(counters, 1u);
    index = __shfl_sync(kAllLanes, index, 0);
    if (index >= (u32)n_pairs) return;
    const Pair pair = pairs[index];
    const bool by_letter = kLetters < 32 || queries != nullptr;
    const u32* scores = by_letter ? table : table + pair.query * (kLetters / 4);
    const Rectangle job{by_letter ? queries + pair.query : nullptr, subjects + pair.columns, pair.rows, pair.n, 0, 0,
                        nullptr, nullptr, 0, free_query_start == 0, free_subject_start == 0, open, extend, one};
    const int n_strips = (pair.rows + PairStrip::kStripRows - 1) / PairStrip::kStripRows;
    const size_t strip_words = (size_t)direction_lines(pair.n) * kWarpLanes;
    Best best{0, -1, -1};
    for (int strip = 0; strip < n_strips; ++strip) {
      // a column of the boundary is read before it is written again
      const Link link{strip > 0 ? boundary : nullptr, kAllLanes, nullptr,
                      strip + 1 < n_strips ? boundary : nullptr, kAllLanes, nullptr, nullptr};
      const Kept kept{kIsLocal ? nullptr : last_row, kIsLocal ? nullptr : last_column, nullptr, kAllLanes,
                      my_directions + strip * strip_words};
      Best found{0, -1, -1};  // of this strip alone: an equal score further down may stand in an earlier column
      PairStrip::run(job, strip, scores, link, kept, shared, found);
      if (found.beats(best)) best = found;
      __threadfence_block();
      __syncwarp();
    }
    Position at{0, 0, kPair};
    if (kIsLocal) {
      best = best_of_warp(best);
      at.row = best.row + 1, at.column = best.column + 1;
    } else {
      best = find_end(job, last_row, last_column, free_query_end != 0, free_subject_end != 0);
      at.row = best.row, at.column = best.column;
    }
    Runs found{my_runs, 0, kStop, 0};
    at = trace(my_directions, pair.n, at, found, shared + PairStrip::kSharedWords);
    if (!kIsLocal) {
      if (at.row == 0 && free_subject_start == 0) {
        found.push(kFromE, at.column);
        at.column = 0;
      }
      if (at.column == 0 && free_query_start == 0) {
        found.push(kFromF, at.row);
        at.row = 0;
      }
    }
    found.flush();
    u32 first = 0;
    if (lane == 0) first = atomicAdd(counters + 1, (u32)found.n);
    first = __shfl_sync(kAllLanes, first, 0);
    const bool fits = (unsigned long long)first + found.n <= most_runs;
    __syncwarp();
    for (int k = lane; fits && k < found.n; k += kWarpLanes) runs[first + k] = my_runs[k];
    if (lane == 0) {
      results[index] = make_int4(best.score, at.row, at.column, fits ? found.n : -1);
      run_places[index] = first;
    }
    __syncwarp();
  }
}
