// pair: one pair of any length, its matrix cut into strips of rows that follow each other through memory.
// Work:    lane = kRows consecutive rows; warp = every n_warps-th strip of 32 kRows rows, first column to last; block =
//          independent warps; grid = at most as many blocks as are resident at the same time, since a
//          warp waits for the strip above it.
// Traffic: 16 bytes global per column and strip (H and F, written and read), through a ring that stays in L2; with
//          directions half a byte per cell; shared memory: 16 bytes read per column step, and for more than 8 letters
//          a word for four rows.
// Limits:  32-bit scores, as swsearch/scoring.py bounds them; at most as many blocks as are resident.
// Why:     a warp for each strip, and strips that wait only for the one above, keep a whole GPU busy on one pair. The
//          lanes' chain along the rows is one instruction per row (`pair_cell`), which is what a short pair waits for.
#include "strip.cuh"

constexpr int kRows = SWSEARCH_ROWS;
constexpr int kLetters = SWSEARCH_LETTERS;
constexpr bool kIsLocal = SWSEARCH_LOCAL == 1;
constexpr bool kDirections = SWSEARCH_DIRECTIONS == 1;
typedef Strip<kRows, kLetters, kIsLocal, kDirections> PairStrip;

static_assert(kLetters == 4 || kLetters == 8 || kLetters == 32, "letters that a lookup holds");

extern "C" __global__ void __launch_bounds__(512, 1) swsearch_pair(
    const unsigned char* __restrict__ query, int rows, const unsigned short* __restrict__ columns, int n,
    const u32* __restrict__ table, int first_row, int first_column,
    const int2* top, const int2* left, int corner, int pays_rows, int pays_columns, int open, int extend, u32 one,
    int2* ring, int ring_columns,  // of each warp; a power of two
    int* progress,                 // of each strip, 0 at first
    int2* wrap,                    // n columns, where there are more strips than warps
    int2* row_checks, int check_strips,  // (H, F) that leave every check_strips-th strip, n of them each; or null, 0
    int2* column_checks, u32 check_mask, int* last_row, int* last_column, u32* directions,
    int4* best) {  // of each strip: score, column, row
  extern __shared__ __align__(16) u32 shared_words[];
  const int warp = __shfl_sync(kAllLanes, (int)(threadIdx.x / kWarpLanes), 0);
  u32* shared = shared_words + warp * PairStrip::kSharedWords;
  // neighbours are on different multiprocessors, and so are the warps that have one strip more than others
  const int index = warp * gridDim.x + blockIdx.x;
  const int n_warps = gridDim.x * (blockDim.x / kWarpLanes);
  const int n_strips = (rows + PairStrip::kStripRows - 1) / PairStrip::kStripRows;
  const Rectangle job{query, columns, rows, n, first_row, first_column, top, left, corner,
                      pays_rows != 0, pays_columns != 0, open, extend, one};

  // Row `strip` of what is handed on: kept whole where it is asked for, or where the next strip is the same warps'
  // next round; else in the warp's ring.
  auto kept_row = [&](int strip) -> int2* {
    if (check_strips > 0 && (strip + 1) % check_strips == 0)
      return row_checks + (size_t)((strip + 1) / check_strips - 1) * n;
    return (strip + 1) % n_warps == 0 ? wrap : nullptr;
  };

  for (int strip = index; strip < n_strips; strip += n_warps) {
    Link link{nullptr, kAllLanes, nullptr, nullptr, kAllLanes, nullptr, nullptr};
    if (strip > 0) {
      const int2* whole = kept_row(strip - 1);
      link.in = whole != nullptr ? whole : ring + (size_t)((strip - 1) % n_warps) * ring_columns;
      link.in_mask = whole != nullptr ? kAllLanes : (u32)ring_columns - 1;
      link.in_progress = progress + strip - 1;
    }
    if (strip + 1 < n_strips) {
      int2* whole = kept_row(strip);
      link.out = whole != nullptr ? whole : ring + (size_t)index * ring_columns;
      link.out_mask = whole != nullptr ? kAllLanes : (u32)ring_columns - 1;
      link.out_progress = progress + strip;
      if (whole == nullptr) {
        link.out_consumed = progress + strip + 1;
        // the ring's reader of the last round must be through with it
        if (strip >= n_warps)
          while (load_acquire(progress + strip + 1 - n_warps) < n) {}
      }
    } else {
      link.out_progress = progress + strip;
    }
    Kept kept{last_row, last_column, column_checks, check_mask, directions};
    if (kDirections)
      kept.directions = directions + (size_t)strip * direction_lines(n) * PairStrip::kWords * kWarpLanes;
    Best found{0, -1, -1};
    PairStrip::run(job, strip, table, link, kept, shared, found);
    if (kIsLocal && best != nullptr) {
      found = best_of_warp(found);
      if (threadIdx.x % kWarpLanes == 0) best[strip] = make_int4(found.score, found.column, found.row, 0);
    }
  }
}
