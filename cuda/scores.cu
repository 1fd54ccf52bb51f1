// scores: what happens to a chunk before and after it is scored.
// Work:    arrange: warp = a tile of 8 columns x 64 subjects, in place; collect: thread = (query, subject) pairs.
// Traffic: arrange 2 bytes per residue; collect 4 to 12 bytes per score.
// Limits:  collect counts what does not fit its list, and the host asks again for a part.
// Why:     only hits leave the device: 20 x 516,371 scores are 41 MB, the hits of E <= 10 some hundred kB.
#include "recurrence.cuh"

constexpr int kTileBytes = 8 * 64;
constexpr int kBlockWarps = 8;

// Turn tiles from the database's layout (column by column, 64 subjects each) into the kernels': the eight letters of
// a subject side by side, times 8: a letter's place in a line of scores.
extern "C" __global__ void swsearch_arrange(unsigned char* residues, unsigned long long n_tiles) {
  __shared__ __align__(16) unsigned char tiles[kBlockWarps][kTileBytes];
  const int lane = threadIdx.x % kWarpLanes, warp = threadIdx.x / kWarpLanes;
  unsigned char* tile = tiles[warp];
  for (unsigned long long t = blockIdx.x * kBlockWarps + warp; t < n_tiles; t += gridDim.x * kBlockWarps) {
    uint4* at = reinterpret_cast<uint4*>(residues + t * kTileBytes);
    reinterpret_cast<uint4*>(tile)[lane] = at[lane];
    __syncwarp();
    u32 words[4];  // subjects 2 lane and 2 lane + 1
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      words[word] = 0;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int column = (word & 1) * 4 + k, subject = 2 * lane + word / 2;
        words[word] |= (u32)(tile[column * 64 + subject] * 8) << (8 * k);
      }
    }
    __syncwarp();
    at[lane] = make_uint4(words[0], words[1], words[2], words[3]);
  }
}

struct Found {
  int query;
  int place;
  int score;
};

// List the pairs of a query and a subject whose score reaches the least: `least` is (n_queries,), and where thresholds
// is not null, (n_queries, n_lengths), a subject's length may ask for more. Pairs are numbered query by query; begin
// and end bound the numbers looked at. Pairs are listed as tasks (8 bytes) or with their score (12 bytes); the count
// goes on when the list is full.
template <typename Entry>
__device__ __forceinline__ void collect(const int* __restrict__ scores, long long score_stride, int n_subjects,
                                        const int* __restrict__ lengths, const int* __restrict__ thresholds,
                                        int n_lengths, const int* __restrict__ least, unsigned long long begin,
                                        unsigned long long end, Entry* __restrict__ list, u32 capacity,
                                        u32* __restrict__ count) {
  const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  for (unsigned long long pair = begin + blockIdx.x * blockDim.x + threadIdx.x; pair < end; pair += step) {
    const int query = (int)(pair / n_subjects), place = (int)(pair % n_subjects);
    const int score = scores[query * score_stride + place];
    int needed = least[query];
    if (thresholds != nullptr) needed = max(needed, thresholds[(size_t)query * n_lengths + lengths[place]]);
    if (score < needed) continue;
    const u32 index = atomicAdd(count, 1u);
    if (index >= capacity) continue;
    int* entry = reinterpret_cast<int*>(list + index);
    entry[0] = query;
    entry[1] = place;
    if constexpr (sizeof(Entry) == sizeof(Found)) entry[2] = score;
  }
}

extern "C" __global__ void swsearch_collect_tasks(const int* scores, long long score_stride, int n_subjects,
                                                  const int* lengths, const int* thresholds, int n_lengths,
                                                  const int* least, unsigned long long begin, unsigned long long end,
                                                  int2* list, u32 capacity, u32* count) {
  collect(scores, score_stride, n_subjects, lengths, thresholds, n_lengths, least, begin, end, list, capacity, count);
}

extern "C" __global__ void swsearch_collect_hits(const int* scores, long long score_stride, int n_subjects,
                                                 const int* lengths, const int* thresholds, int n_lengths,
                                                 const int* least, unsigned long long begin, unsigned long long end,
                                                 Found* list, u32 capacity, u32* count) {
  collect(scores, score_stride, n_subjects, lengths, thresholds, n_lengths, least, begin, end, list, capacity, count);
}
