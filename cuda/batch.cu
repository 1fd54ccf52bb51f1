// batch: score a track of query strips against blocks of 64 subjects, one subject (or two) per lane.
// Work:    thread = one strip of kRows query rows against two subjects (kQueries = 1) or against one subject with two
//          queries (kQueries = 2); warp = the strip against 64 or 32 subjects; pipeline of warps = consecutive
//          strips, each one tile of 8 columns behind the one before; block = 16 warps in one or more pipelines;
//          grid = as many blocks as are resident. Jobs (a block of subjects, or half of it) are handed out
//          longest first by a counter, and warps go on to the next job without waiting for the others.
// Traffic: 16 bytes global per column and lane between passes; half a load of 8 bytes of shared memory per pair of cells
//          for scores (a quarter where they are bytes), 4 / kRows words for boundaries; H and E of the strip in registers,
//          89 to 128 per thread (sm_90).
// Limits:  scores of 16 bits; where one reaches the limit that swsearch/engines/gpu/limits.py states, kUncertain is stored,
//          and the subject scored again in 32 bits. In half precision the limit is near: the kernel takes no more jobs when
//          many strips have reached it, and the host scores everything as integers.
// Why:     one thread per subject with the whole query in its strips ends with the longest subjects: 3.8 TCUPS on a
//          database like Swiss-Prot (H200, prototype) where such pipelines, as integers, reach 5.3 (kQueries = 1) and 6.2
//          (2). Four warps per scheduler and tiles of eight columns won over 3, 6 and 8 warps and 4 and 16 columns;
//          counters that are polled over barriers (__syncthreads -8 %, mbarrier -1.5 %); two slots do as well as three.
//          Half precision reaches 6.7 and 7.4 (H100, November 2026): 0.12 of that from eight columns side by side, 0.6 from
//          gap costs that are constants, since what an instruction reads from registers counts. The best score of every
//          second row alone would gain 5 to 6 %; to score again what is then in doubt (1.7 % of the cells of a search with
//          default options) takes as much.
#include "recurrence.cuh"

template <bool half> struct LaneOf { typedef Pair16 type; };
template <> struct LaneOf<true> { typedef Half16 type; };

constexpr int kRows = SWSEARCH_ROWS;
constexpr Mode kMode = static_cast<Mode>(SWSEARCH_MODE);
constexpr int kGapOpen = SWSEARCH_GAP_OPEN, kGapExtend = SWSEARCH_GAP_EXTEND;
constexpr int kQueries = SWSEARCH_QUERIES;
typedef LaneOf<SWSEARCH_HALF>::type Lane;
constexpr int kTile = 8;       // columns between two meetings of neighbouring warps
constexpr int kSlots = 2;      // tiles that a warp may be ahead of the next one
constexpr int kQueue = 64;     // jobs that a pipeline's first warp may be ahead of its last
constexpr int kMaxWarps = 16;  // of a block: four on each scheduler; other numbers lose 5 to 20 %

// Columns that are taken together, each one row behind the one before, so that their chains of F are independent.
// Other lanes are bound by the ALU, and gain nothing.
constexpr int kSkew = Lane::kIsHalf ? kTile : 1;

// The scores of a strip by letter come from global memory in lines of 32 letters with four bytes each: of four rows
// (kQueries = 1), or of two rows of both queries. In shared memory a letter has 8 bytes of a line: these four as scores of
// 16 bits, or, where a byte permute joins two subjects, the bytes of two lines.
constexpr bool kAsBytes = kQueries == 1 && !Lane::kIsHalf;
constexpr int kLetters = 32;
constexpr int kLines = (kRows * kQueries + 3) / 4;
constexpr int kLineBytes = kLetters * 8;
constexpr int kProfileBytes = (kAsBytes ? (kLines + 1) / 2 : kLines) * kLineBytes;

static_assert(kQueries == 1 || kQueries == 2, "a lane holds one query against two subjects, or two against one");
static_assert(kRows >= 4 && kRows <= 32, "H and E of a strip must fit 128 registers");
static_assert(kMode == kLocal || !Lane::kIsHalf, "half precision holds no score below 0");
static_assert(kTile % kSkew == 0, "a tile is whole groups of columns");
static_assert(kQueue > kMaxWarps * kSlots, "a job must not leave the queue before the last warp has read it");

// A strip of query rows, for the lower and the upper half of a lane (equal where kQueries is 1).
struct Strip {
  int query[2];  // -1: nothing in this half
  int row[2];    // first row, counted from 0; 0 or less begins a query (rows below 0 are padding)
  int last[2];   // row of the strip that ends the query, or -1
  int unused[2];
};

// Scores of one column's letters down the strip; kQueries = 1 has a letter of either subject.
struct ColumnScores {
  static constexpr int kRowsOfLine = kAsBytes ? 8 : 4 / kQueries;
  const unsigned char *a, *b;  // the letters' places in the first line
  uint2 of_a, of_b;
  __device__ __forceinline__ auto at(int r) {
    const int k = r % kRowsOfLine;
    if (k == 0) {
      of_a = *reinterpret_cast<const uint2*>(a + r / kRowsOfLine * kLineBytes);
      if constexpr (kQueries == 1) of_b = *reinterpret_cast<const uint2*>(b + r / kRowsOfLine * kLineBytes);
    }
    const bool second = k >= kRowsOfLine / 2;
    const u32 word_a = second ? of_a.y : of_a.x, word_b = second ? of_b.y : of_b.x;
    if constexpr (kQueries == 2) return word_a;
    else if constexpr (Lane::kIsHalf) return TwoScores{word_a, word_b, k % 2 == 1};
    else return permute(word_a, word_b, k % 4 | (k % 4 | 8) << 4 | (k % 4 + 4) << 8 | (k % 4 + 12) << 12);
  }
};

// Wait until a counter of another warp has reached a value, then see what that warp wrote.
__device__ __forceinline__ void wait_for(const volatile int* counter, int value) {
  while (*counter < value) {
  }
  __syncwarp();
}

// Take a region that no other block has. There are as many as blocks can be resident, so that one is free, or soon
// will be: blocks that have one wait for nobody.
__device__ int take_region(u32* taken, int n_regions) {
  int region = blockIdx.x % n_regions;
  while (atomicExch(taken + region, 1u) != 0) region = (region + 1) % n_regions;
  __threadfence();
  return region;
}

extern "C" __global__ void __launch_bounds__(kMaxWarps* kWarpLanes, 1) swsearch_batch(
    const uint2* __restrict__ residues,     // (n_tiles, 64): eight columns of a subject, letters times 8
    const u32* __restrict__ tile_offsets,   // (n_blocks + 1,): first tile of each block
    const int* __restrict__ lengths,        // (n_subjects,)
    int n_subjects, int first_block, int n_jobs, int pipeline_warps,
    const u32* __restrict__ profile,        // (n_strips, kLines, 32): four scores of a byte
    const Strip* __restrict__ strips, int n_strips,
    int bias, int limit, u32 one,
    uint2* __restrict__ boundary,           // (n_regions, region_columns, 32): between passes, shared by all launches
    u32 region_columns, int n_regions, u32 pipeline_columns, u32* __restrict__ taken,
    int* __restrict__ scores, long long score_stride,  // (n_queries, score_stride)
    u32* __restrict__ counter, volatile u32* uncertain, u32 most_uncertain) {
  extern __shared__ __align__(16) unsigned char shared[];
  const int n_warps = blockDim.x / kWarpLanes;
  const int lane = threadIdx.x % kWarpLanes;
  // through a shuffle, so that the compiler knows it to be the same in all lanes: addresses stay in uniform registers
  const int warp = __shfl_sync(kAllLanes, (int)(threadIdx.x / kWarpLanes), 0);
  const int pipeline = warp / pipeline_warps, stage = warp % pipeline_warps;
  const bool is_first = stage == 0, is_last = stage == pipeline_warps - 1;

  unsigned char* my_profile = shared + warp * kProfileBytes;
  uint2* exchange = reinterpret_cast<uint2*>(shared + n_warps * kProfileBytes);  // (warps, kSlots, kTile, 32)
  volatile int* done = reinterpret_cast<volatile int*>(exchange + n_warps * kSlots * kTile * kWarpLanes);
  volatile u32* queue = reinterpret_cast<volatile u32*>(done + kMaxWarps) + pipeline * kQueue;

  const Boundary<kMode> edge{bias, kGapOpen, kGapExtend};
  const Costs costs = Lane::costs(kGapOpen + kGapExtend, kGapExtend, bias, one);
  const int passes = (n_strips + pipeline_warps - 1) / pipeline_warps;
  const u32 local_top = Lane::both(edge.at(0)), local_gap = Lane::both(edge.gap_at(0));

  if (is_first && lane == 0) queue[0] = atomicAdd(counter, 1u);
  if (lane == 0) done[warp] = 0;
  __shared__ int region;
  if (threadIdx.x == 0) region = passes > 1 ? take_region(taken, n_regions) : 0;
  __syncthreads();
  uint2* my_boundary =
      boundary + ((size_t)region * region_columns + pipeline * pipeline_columns) * kWarpLanes + lane;

  u32 seen = 0;  // strips that reached the limit, as they were counted a job ago, so that nobody waits for the number
  int tick = 0;  // tiles that this warp has finished, over all jobs and passes
  int loaded = -1;
  u32 H[kRows], E[kRows];

  for (u32 turn = 0;; ++turn) {
    const u32 job = queue[turn % kQueue];
    if (job >= (u32)n_jobs) break;
    if (is_first && lane == 0) {
      queue[(turn + 1) % kQueue] = Lane::kIsHalf && seen > most_uncertain ? (u32)n_jobs : atomicAdd(counter, 1u);
      if (Lane::kIsHalf) seen = *uncertain;
    }
    const int block = first_block + (int)(kQueries == 1 ? job : job >> 1);
    const int half = kQueries == 1 ? 0 : (int)(job & 1);
    const int first_tile = tile_offsets[block], n_tiles = tile_offsets[block + 1] - first_tile;
    const uint2* column = residues + (size_t)first_tile * 64 + half * 32 + lane;
    int place[2];
    place[0] = block * 64 + half * 32 + lane;
    place[1] = kQueries == 1 ? place[0] + 32 : place[0];
    int n[2] = {0, 0};
    if constexpr (kMode != kLocal) {
      n[0] = place[0] < n_subjects ? lengths[place[0]] : 0;
      n[1] = place[1] < n_subjects ? lengths[place[1]] : 0;
    }

    for (int pass = 0; pass < passes; ++pass) {
      const int strip = pass * pipeline_warps + stage;
      if (strip >= n_strips) {  // the last pass has fewer strips than the pipeline has warps
        tick += n_tiles;
        wait_for(done + warp - 1, tick);  // so that the next job stands in the queue when this warp looks
        if (lane == 0) done[warp] = tick;
        continue;
      }
      const bool hands_on = strip < n_strips - 1;
      const Strip what = strips[strip];
      if (strip != loaded) {
        __syncwarp();
        const u32* from = profile + (size_t)strip * kLines * kLetters + lane;
        uint2* to = reinterpret_cast<uint2*>(my_profile) + lane;
        for (int line = 0; line < kLines; ++line) {
          const u32 four = from[line * kLetters];
          if constexpr (kAsBytes) reinterpret_cast<u32*>(to + line / 2 * kLetters)[line % 2] = four;
          else to[line * kLetters] = make_uint2(Lane::stored(permute(four, 0, 0x9180)), Lane::stored(permute(four, 0, 0xb3a2)));
        }
        loaded = strip;
        __syncwarp();
      }
      // halves that go on with a query keep what the strip before hands them; those that begin one take the edge
      const u32 keep = (what.row[0] > 0 ? 0xffffu : 0u) | (what.row[1] > 0 ? 0xffff0000u : 0u);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        H[r] = Lane::pack(edge.at(max(what.row[0] + r + 1, 0)), edge.at(max(what.row[1] + r + 1, 0)));
        E[r] = Lane::pack(edge.gap_at(max(what.row[0] + r + 1, 0)), edge.gap_at(max(what.row[1] + r + 1, 0)));
      }
      u32 corner = Lane::pack(edge.at(max(what.row[0], 0)), edge.at(max(what.row[1], 0)));
      u32 best = kMode == kLocal ? costs.floor : 0u;
      const u32 row_mask = (what.last[0] >= 0 ? 0xffffu : 0u) | (what.last[1] >= 0 ? 0xffff0000u : 0u);
      u32 next_a_x = column[0].x, next_a_y = column[0].y, next_b_x = 0, next_b_y = 0;
      if constexpr (kQueries == 1) next_b_x = column[32].x, next_b_y = column[32].y;

      for (int tile = 0; tile < n_tiles; ++tile, ++tick) {
        const u32 a_x = next_a_x, a_y = next_a_y, b_x = next_b_x, b_y = next_b_y;
        {
          // one tile beyond the last is allocated, so that this needs no bound
          const uint2 next = column[(size_t)(tile + 1) * 64];
          next_a_x = next.x, next_a_y = next.y;
          if constexpr (kQueries == 1) {
            const uint2 other = column[(size_t)(tile + 1) * 64 + 32];
            next_b_x = other.x, next_b_y = other.y;
          }
        }
        uint2 in[kTile];
        if (!is_first) {
          wait_for(done + warp - 1, tick + 1);
          const uint2* from = exchange + ((warp - 1) * kSlots + tick % kSlots) * kTile * kWarpLanes + lane;
#pragma unroll
          for (int i = 0; i < kTile; ++i) in[i] = from[i * kWarpLanes];
        } else if (pass > 0) {
          wait_for(done + warp + pipeline_warps - 1, tick - n_tiles + 1);
#pragma unroll
          for (int i = 0; i < kTile; ++i) in[i] = my_boundary[(size_t)(tile * kTile + i) * kWarpLanes];
        } else {
#pragma unroll
          for (int i = 0; i < kTile; ++i) in[i] = make_uint2(0, 0);
        }
        if (keep != kAllLanes) {
#pragma unroll
          for (int i = 0; i < kTile; ++i) {
            const int j = tile * kTile + i + 1;
            const u32 top = kMode == kGlobal ? Lane::both(edge.at(j)) : local_top;
            const u32 gap = kMode == kGlobal ? Lane::both(edge.gap_at(j)) : local_gap;
            in[i].x = (in[i].x & keep) | (top & ~keep);
            in[i].y = (in[i].y & keep) | (gap & ~keep);
          }
        }
        // the slot that this tile goes to was read by the next warp kSlots tiles ago
        if (hands_on && !is_last) wait_for(done + warp + 1, tick - kSlots + 1);
        uint2* to_next = exchange + (warp * kSlots + tick % kSlots) * kTile * kWarpLanes + lane;

#pragma unroll
        for (int first = 0; first < kTile; first += kSkew) {
          ColumnScores column_scores[kSkew];
          u32 diagonal[kSkew], F[kSkew], above[kSkew];
#pragma unroll
          for (int c = 0; c < kSkew; ++c) {
            const int i = first + c;
            const u32 selector = 0x4440u | (i & 3);  // one letter, zero-extended
            column_scores[c].a = my_profile + permute(i < 4 ? a_x : a_y, 0, selector);
            if constexpr (kQueries == 1) column_scores[c].b = my_profile + permute(i < 4 ? b_x : b_y, 0, selector);
            diagonal[c] = corner, F[c] = in[i].y, above[c] = 0;
            corner = in[i].x;
          }
#pragma unroll
          for (int step = 0; step < kRows + kSkew - 1; ++step) {
#pragma unroll
            for (int c = 0; c < kSkew; ++c) {
              const int r = step - c, i = first + c;
              if (r < 0 || r >= kRows) continue;
              cell<Lane, kMode>(diagonal[c], column_scores[c].at(r), H[r], E[r], F[c], costs);
              if constexpr (kMode == kLocal) {
                if (r & 1) best = Lane::max3(best, above[c], H[r]);
                else if (r == kRows - 1) best = Lane::max2(best, H[r]);
                above[c] = H[r];
              }
              if (r == kRows - 1) in[i] = make_uint2(H[r], F[c]);
            }
          }
          if constexpr (kMode == kSemiglobal) best = Lane::max2(best, H[kRows - 1] & row_mask);
          if constexpr (kMode != kLocal) {
            const int j = tile * kTile + first + 1;
            if (j == n[0] || j == n[1]) {  // a subject ends here
              const u32 ends = (j == n[0] ? 0xffffu : 0u) | (j == n[1] ? 0xffff0000u : 0u);
#pragma unroll
              for (int r = 0; r < kRows; ++r) {
                if constexpr (kMode == kSemiglobal) {
                  best = Lane::max2(best, H[r] & ends);
                } else {
                  const u32 here = ends & ((what.last[0] == r ? 0xffffu : 0u) | (what.last[1] == r ? 0xffff0000u : 0u));
                  best = (best & ~here) | (H[r] & here);
                }
              }
            }
          }
        }
        // stored after the columns, which stay one run of instructions to be interleaved
        if (!is_last) {
#pragma unroll
          for (int i = 0; i < kTile; ++i) to_next[i * kWarpLanes] = in[i];
        } else if (hands_on) {
#pragma unroll
          for (int i = 0; i < kTile; ++i) my_boundary[(size_t)(tile * kTile + i) * kWarpLanes] = in[i];
        }
        __threadfence_block();
        __syncwarp();
        if (lane == 0) done[warp] = tick + 1;
      }

#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (what.query[h] < 0 || place[h] >= n_subjects) continue;
        int* score = scores + (long long)what.query[h] * score_stride + place[h];
        int value = Lane::half(best, h) - bias;
        if (kMode == kLocal && value >= limit) {
          value = kUncertain;
          if (Lane::kIsHalf) atomicAdd((u32*)uncertain, 1u);
        }
        if constexpr (kMode == kGlobal) {
          if (what.last[h] >= 0 && n[h] > 0) *score = value;
        } else if (value > 0) {
          atomicMax(score, value);
        }
      }
    }
  }

  __syncthreads();
  if (threadIdx.x == 0 && passes > 1) {
    __threadfence();
    atomicExch(taken + region, 0u);
  }
}
