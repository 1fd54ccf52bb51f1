// wavefront: score pairs of one query with one subject (or two), each by one warp, along anti-diagonals.
// Work:    lane = kRows consecutive query rows, one column behind the lane before; warp = a task: a query against two
//          neighbouring subjects (16 bits) or one (32 bits), in passes of 32 kRows rows; block = independent
//          warps; grid = as many blocks as swsearch/engines/gpu/launch.py gives. Tasks are handed out in order, longest
//          first.
// Traffic: 8 bytes global per column between passes; kRows / 4 shared words per column for each subject's scores, one
//          bank per lane, so never a conflict; 2 shuffles and 12 shared bytes per column step.
// Limits:  16-bit scores as in batch.cu; 32-bit ones hold whatever swsearch/scoring.py lets pass.
// Why:     the 64 longest subjects of Swiss-Prot (35,213 to 6,000 residues) in one batch are three times a block's
//          fair share of the whole scan; here 32 lanes share one subject.
#include "recurrence.cuh"

constexpr int kRows = SWSEARCH_ROWS;
constexpr Mode kMode = static_cast<Mode>(SWSEARCH_MODE);
constexpr int kGapOpen = SWSEARCH_GAP_OPEN, kGapExtend = SWSEARCH_GAP_EXTEND;
constexpr bool kWide = SWSEARCH_BITS == 32;
constexpr int kPassRows = kRows * kWarpLanes;
constexpr int kWords = kRows / 4;  // words of four int8 scores for each letter and lane
constexpr int kLetters = 32;
constexpr int kAhead = 32;         // columns that are fetched at a time
constexpr int kProfileWords = kWords * kLetters * kWarpLanes;
// Shared words of a warp: the profile, 64 columns of letters (the skew is up to 31), 32 columns of (H, F) from above.
constexpr int kSharedWords = kProfileWords + 2 * kAhead + 2 * kAhead;

static_assert(SWSEARCH_BITS == 16 || SWSEARCH_BITS == 32, "lane width in bits");
static_assert(kRows % 4 == 0 && kRows >= 4 && kRows <= 16, "profile words hold four rows");

template <bool wide> struct LaneOf { typedef Pair16 type; };
template <> struct LaneOf<true> { typedef Single32 type; };
typedef LaneOf<kWide>::type Lane;

struct Query {
  u32 profile;  // first word of its profile
  int passes;
  int length;
  int padding;  // rows before its first residue (semi-global mode); 0 where padding follows the last
};

struct Task {
  int query;
  int place;  // of the first subject in the chunk
};

extern "C" __global__ void __launch_bounds__(512, 1) swsearch_wavefront(
    const unsigned char* __restrict__ residues, const u32* __restrict__ tile_offsets,  // as in batch.cu
    const int* __restrict__ lengths, int n_subjects,
    const u32* __restrict__ profiles,       // (row / 4, 32): four rows' scores of each letter
    const Query* __restrict__ queries,
    const Task* __restrict__ tasks,         // a list, or null: every listed query against every run of subjects
    const u32* __restrict__ n_listed, u32 n_tasks,  // tasks: *n_listed, none if more than n_tasks; or n_tasks
    const int* __restrict__ query_list, int n_queries,
    int bias, int limit, u32 one,
    uint2* __restrict__ boundary,           // columns of (H, F) between passes
    const u32* __restrict__ boundary_offsets,  // first column of each warp's share
    int* __restrict__ scores, long long score_stride, u32* __restrict__ counter) {
  extern __shared__ __align__(16) u32 shared_words[];
  const int lane = threadIdx.x % kWarpLanes;
  const int warp = __shfl_sync(kAllLanes, (int)(threadIdx.x / kWarpLanes), 0);
  u32* profile = shared_words + warp * kSharedWords;
  u32* letters = profile + kProfileWords;
  uint2* above = reinterpret_cast<uint2*>(letters + 2 * kAhead);
  const u32* my_profile = profile + lane;

  const Boundary<kMode> edge{bias, kGapOpen, kGapExtend};
  const Costs costs = Lane::costs(kGapOpen + kGapExtend, kGapExtend, bias, one);
  const u32 total = tasks == nullptr ? n_tasks : *n_listed <= n_tasks ? *n_listed : 0;
  const u32 n_warps = gridDim.x * (blockDim.x / kWarpLanes);
  u32 index = warp * gridDim.x + blockIdx.x;  // the longest tasks on as many multiprocessors as there are
  // a warp's first task is the one of its number; later ones have no more columns, so its share is enough for all
  uint2* my_boundary = boundary + boundary_offsets[index];

  for (; index < total; index = __shfl_sync(kAllLanes, index, 0)) {
    Task task;
    if (tasks != nullptr) {
      task = tasks[index];
    } else {
      task.query = query_list[index % n_queries];
      task.place = (int)(index / n_queries) * Lane::kHalves;
    }
    const Query query = queries[task.query];
    const int block = task.place >> 6;
    const unsigned char* subject =
        residues + ((size_t)tile_offsets[block] * 64 + (task.place & 63)) * 8;
    const bool has_second = !kWide && task.place + 1 < n_subjects;
    const int n_first = lengths[task.place], n_second = has_second ? lengths[task.place + 1] : 0;
    const int n = max(n_first, n_second);
    u32 best = kMode == kLocal ? costs.floor : Lane::both(kWide ? -(1 << 30) : 0);

    for (int pass = 0; pass < query.passes; ++pass) {
      __syncwarp();
      {  // each lane brings its own rows' scores: bank = lane, here and when they are used
        const u32* from = profiles + query.profile + (size_t)(pass * kPassRows + lane * kRows) / 4 * kLetters;
        for (int word = 0; word < kWords; ++word)
          for (int letter = 0; letter < kLetters; letter += 4) {
            const uint4 four = *reinterpret_cast<const uint4*>(from + word * kLetters + letter);
            u32* to = profile + (word * kLetters + letter) * kWarpLanes + lane;
            to[0] = four.x, to[kWarpLanes] = four.y, to[2 * kWarpLanes] = four.z, to[3 * kWarpLanes] = four.w;
          }
      }
      const int row = pass * kPassRows + lane * kRows - query.padding;  // first row, counted from 0
      u32 H[kRows], E[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        H[r] = Lane::both(edge.at(max(row + r + 1, 0)));
        E[r] = Lane::both(edge.gap_at(max(row + r + 1, 0)));
      }
      u32 corner = Lane::both(edge.at(max(row, 0))), F = 0;
      const int last = query.length - 1 - row;  // the query's last row, seen from this lane
      const bool ends_here = last >= 0 && last < kRows;
      const bool hands_on = pass < query.passes - 1;

      // One column of this lane: lane l is l columns behind lane 0, whose column is base + k.
      auto step = [&](int base, int k, bool guarded) {
        const int c = base + k - lane;
        u32 top = __shfl_up_sync(kAllLanes, H[kRows - 1], 1), gap = __shfl_up_sync(kAllLanes, F, 1);
        const uint2 from_above = above[k];
        if (lane == 0) top = from_above.x, gap = from_above.y;
        if (guarded && (c < 0 || c >= n)) return;
        const u32 word = letters[c & (2 * kAhead - 1)];
        const unsigned char* a = reinterpret_cast<const unsigned char*>(my_profile) + (word & 0xffffu);
        const unsigned char* b = reinterpret_cast<const unsigned char*>(my_profile) + (word >> 16);
        u32 diagonal = corner, previous = 0, wa = 0, wb = 0;
        corner = top;
        F = gap;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const int byte = r & 3;
          if (byte == 0) {
            wa = *reinterpret_cast<const u32*>(a + r / 4 * kLetters * kWarpLanes * 4);
            if (!kWide) wb = *reinterpret_cast<const u32*>(b + r / 4 * kLetters * kWarpLanes * 4);
          }
          const u32 sign = byte | 8;
          const u32 score = kWide ? permute(wa, 0, byte | sign << 4 | sign << 8 | sign << 12)
                                  : permute(wa, wb, byte | sign << 4 | (byte + 4) << 8 | (sign + 4) << 12);
          cell<Lane, kMode>(diagonal, score, H[r], E[r], F, costs);
          if constexpr (kMode == kLocal) {
            if (r & 1) best = Lane::max3(best, previous, H[r]);
            previous = H[r];
          }
        }
        if constexpr (kMode != kLocal) {
          const u32 ends = kWide ? (c == n_first - 1 ? kAllLanes : 0u)
                                 : (c == n_first - 1 ? 0xffffu : 0u) | (c == n_second - 1 ? 0xffff0000u : 0u);
          // the query's last row is the last of the last lane: padding stands before it
          if (kMode == kSemiglobal && ends_here) best = Lane::max2(best, H[kRows - 1]);
          if (ends != 0) {
            const u32 low = kWide ? (u32)-(1 << 30) : 0u;  // outside the mask, the smallest value there is
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
              if (kMode == kSemiglobal) best = Lane::max2(best, (H[r] & ends) | (low & ~ends));
              else if (r == last) best = (best & ~ends) | (H[r] & ends);
            }
          }
        }
        if (hands_on && lane == kWarpLanes - 1) my_boundary[c] = make_uint2(H[kRows - 1], F);
      };

      for (int base = 0; base < n + kWarpLanes - 1; base += kAhead) {
        __syncwarp();
        {
          const int c = base + lane;
          u32 word = 0;
          if (c < n) {
            const unsigned char* at = subject + (size_t)(c >> 3) * (64 * 8) + (c & 7);
            word = (u32)at[0] * 16u;  // letter times the bytes of a letter's row of words
            if (!kWide) word |= (u32)at[8] * 16u << 16;
          }
          letters[c & (2 * kAhead - 1)] = word;
          const int j = c + 1;
          above[lane] = pass == 0 || c >= n ? make_uint2(Lane::both(edge.at(j)), Lane::both(edge.gap_at(j)))
                                            : my_boundary[c];
        }
        __syncwarp();
        // in the middle every lane has a column, and the steps can overlap
        if (base >= kAhead && base + kAhead <= n) {
#pragma unroll 4
          for (int k = 0; k < kAhead; ++k) step(base, k, false);
        } else {
          for (int k = 0; k < kAhead; ++k) step(base, k, true);
        }
      }
      __threadfence_block();
    }
    // in global mode exactly one lane met the query's last row; all others hold the smallest value
#pragma unroll
    for (int distance = kWarpLanes / 2; distance > 0; distance /= 2)
      best = Lane::max2(best, __shfl_xor_sync(kAllLanes, best, distance));
    if (lane == 0) {
      int* score = scores + (long long)task.query * score_stride + task.place;
      const int floor = kMode == kGlobal ? -(1 << 30) : 0;
      for (int h = 0; h < Lane::kHalves; ++h) {
        const int value = Lane::half(best, h) - bias;
        if ((h == 0 ? n_first : n_second) > 0) score[h] = value < limit ? max(value, floor) : kUncertain;
      }
      index = n_warps + atomicAdd(counter, 1u);
    }
  }
}
