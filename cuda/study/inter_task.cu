// inter_task.cu: one subject per thread, tiles of 4 x 4 cells in registers, columns buffered between tiles (CUDASW++).
//
// Work:    thread = one subject against the whole query, warp = 32 subjects of similar length, interleaved, block =
//          any number of warps, grid = warps that take groups of 32 subjects a grid's stride apart.
// Traffic: a tile of 16 cells loads 4 words of the query profile through the read-only cache; H and E of its last
//          column are 4 words out and 4 words in, in shared memory (SWSEARCH_SHARED: short queries) or global memory.
//          40 or 48 registers (sm_90, NVRTC 13.5, November 2026).
// Limits:  local mode; scores up to 32,767 (swsearch/bench/study/inter_task.py bounds them beforehand); with
//          SWSEARCH_SHARED 4 bytes of shared memory per query row and thread.
// Why:     the seed for short queries against CUDASW++ 2.0's form: the same tiles, another home for the buffer.
#include "study.cuh"

constexpr bool kShared = SWSEARCH_SHARED != 0;
constexpr int kSide = 4;  // rows and columns of a tile, scores in a profile word, residues in a word
constexpr int kLetters = 32;
static_assert(kMode == kLocal, "the buffer between tiles has room for local scores");

__device__ __forceinline__ u32 packed(u32 h, u32 e) { return (h & 0xffffu) | (e << 16); }
__device__ __forceinline__ u32 packed_h(u32 word) { return (u32)(int)(short)word; }
__device__ __forceinline__ u32 packed_e(u32 word) { return (u32)((int)word >> 16); }

extern "C" __global__ void study_inter_task(
    const u32* __restrict__ residues,       // by group: (words, 32 lanes), four residues per word
    const u64* __restrict__ group_begins,   // (groups): first word
    const int* __restrict__ group_words,    // (groups): words of a lane
    int n_groups,
    const u32* __restrict__ profile,        // (row_words, 32 letters): scores of four rows
    int row_words, int gap_open, int gap_extend, u32 one,
    u32* buffer,                            // (rows, threads of the grid) unless kShared
    int* __restrict__ scores,               // (groups, 32)
    int* __restrict__ matrix,               // (residues of all groups, rows) if kKeep: of each column, all rows
    int n_rows) {
  extern __shared__ __align__(16) u32 shared_words[];
  const int t = threadIdx.x, lane = t % kWarpLanes;
  const int n_warps = (int)(gridDim.x * blockDim.x) / kWarpLanes;
  const u64 stride = kShared ? blockDim.x : (u64)gridDim.x * blockDim.x;
  u32* const column = kShared ? shared_words + t : buffer + (u64)blockIdx.x * blockDim.x + t;
  const Costs costs = make_costs(gap_open, gap_extend, one);

  for (int group = (int)(blockIdx.x * blockDim.x + t) / kWarpLanes; group < n_groups; group += n_warps) {
    const u32* const words = residues + group_begins[group] + lane;
    const int n_words = group_words[group];
    u32 best = 0;
    for (int w = 0; w < n_words; ++w) {
      const u32 letters = words[(u64)w * kWarpLanes];
      u32 h[kSide], f[kSide];  // of the row above, then of this row
#pragma unroll
      for (int c = 0; c < kSide; ++c) h[c] = costs.floor, f[c] = costs.minus_first;
      u32 corner = costs.floor;
      for (int r = 0; r < row_words; ++r) {
        u32 four_scores[kSide];
#pragma unroll
        for (int c = 0; c < kSide; ++c) four_scores[c] = profile[r * kLetters + ((letters >> (8 * c)) & 31u)];
#pragma unroll
        for (int k = 0; k < kSide; ++k) {
          u32* const buffered = column + (u64)(r * kSide + k) * stride;
          const u32 word = w == 0 ? packed(costs.floor, costs.minus_first) : *buffered;
          u32 diagonal = corner, e = packed_e(word);
          corner = packed_h(word);
#pragma unroll
          for (int c = 0; c < kSide; ++c) {
            // byte k with its sign in the other three
            const u32 score = permute(four_scores[c], 0u, 0x8880u + 0x1111u * k);
            cell<Single32, kMode>(diagonal, score, h[c], e, f[c], costs);
            if constexpr (kKeep) {
              const u64 place = (group_begins[group] + (u64)w * kWarpLanes + lane) * kSide + c;
              if (r * kSide + k < n_rows) matrix[place * n_rows + r * kSide + k] = (int)h[c];
            }
          }
          best = Single32::max3(best, Single32::max2(h[0], h[1]), Single32::max2(h[2], h[3]));
          *buffered = packed(h[kSide - 1], e);
        }
      }
    }
    scores[(u64)group * kWarpLanes + lane] = (int)best;
  }
}
