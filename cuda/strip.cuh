// strip.cuh: one warp takes one strip of one pair's matrix, column by column; what the pair kernels share.
//
// Lane l holds kRows consecutive rows in registers and stands l columns behind lane 0. Letters, H and F go down the
// lanes by shuffles; what enters the first lane comes from the boundary, or from the strip above through memory; what
// leaves the last lane goes to the strip below in the same way. One score fills a register: 32 bits hold any pair
// that swsearch/scoring.py lets pass.
#pragma once

#include "recurrence.cuh"

constexpr int kAhead = 32;       // columns that are fetched at a time
constexpr int kSmallest = -(1 << 30);
constexpr int kDirectionRows = 8;  // rows of a word of directions, four bits each

// Four bits of a cell, as pair_cell shifts them in: a word holds eight rows, the first of them on top.
constexpr u32 kUnderPair = 8, kUnderF = 4, kOpensE = 2, kOpensF = 1;

// Lines of directions of a strip: column c of lane l is in line c + l, so that what the lanes write at a time stands
// together.
__device__ __forceinline__ int direction_lines(int n) { return (n + kWarpLanes - 1 + kAhead - 1) / kAhead * kAhead; }

// A rectangle of a pair's matrix. Rows and columns count from 0 within it; first_row and first_column are the number
// of rows above and of columns to the left of it in the whole matrix.
struct Rectangle {
  const unsigned char* query;     // letters of its rows; null where the table has a line for each row instead
  const unsigned short* columns;  // of each column, what the lookup of scores takes
  int rows, n, first_row, first_column;
  const int2* top;   // (H, F) that enter its first row; null where that is the matrix's first
  const int2* left;  // (H, E) that enter its first column; null where that is the matrix's first
  int corner;        // H above its first row, left of its first column
  bool pays_rows, pays_columns;  // whether residues before the first column, above the first row, cost a gap
  int open, extend;  // cost of a gap before its first residue, and of each
  u32 one;           // 1, which the compiler must not know

  __device__ __forceinline__ int gap(bool pays, int length) const {
    return pays && length > 0 ? -open - length * extend : 0;
  }
  __device__ __forceinline__ int2 enter_row(int c) const {
    if (top != nullptr) return __ldcg(top + c);
    const int h = gap(pays_columns, first_column + c + 1);
    return make_int2(h, h - open - extend);
  }
  __device__ __forceinline__ int2 enter_column(int i) const {
    if (left != nullptr) return __ldcg(left + i);
    const int h = gap(pays_rows, first_row + i + 1);
    return make_int2(h, h - open - extend);
  }
};

// How strips are chained: what a strip reads from the one above, and writes for the one below. Progress is counted in
// columns that a strip's last lane has finished.
struct Link {
  const int2* in;          // null: the rectangle's boundary
  u32 in_mask;             // column & mask is its place
  const int* in_progress;  // null: all is there
  int2* out;               // null: nobody reads it
  u32 out_mask;
  int* out_progress;        // null: nobody waits
  const int* out_consumed;  // progress of the strip below where it must be waited for, else null
};

// What a strip leaves apart from its bottom row.
struct Kept {
  int* last_row;      // H of the rectangle's last row, n of them, or null
  int* last_column;   // H of its last column, or null
  int2* column_checks;  // (H, E) that leave every (check_mask + 1)-th column, `rows` of them each, or null
  u32 check_mask;
  u32* directions;  // null where kDirections is not set
};

// The best cell of a local alignment: highest score, then smallest column, then smallest row.
struct Best {
  int score, column, row;
  __device__ __forceinline__ bool beats(const Best& other) const {
    if (score != other.score) return score > other.score;
    if (column != other.column) return column < other.column;
    return row < other.row;
  }
};

__device__ __forceinline__ Best best_of_warp(Best best) {
#pragma unroll
  for (int distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    Best other;
    other.score = __shfl_xor_sync(kAllLanes, best.score, distance);
    other.column = __shfl_xor_sync(kAllLanes, best.column, distance);
    other.row = __shfl_xor_sync(kAllLanes, best.row, distance);
    if (other.beats(best)) best = other;
  }
  return best;
}

// Where the scores of a lane's rows come from. kLetters is the number of different letters of the subject.
// 4: one register per row holds them as bytes; a column is the PRMT selector that picks one and spreads its sign.
// 8: the same with two registers. 32: words of four rows in shared memory, bank = lane, so never a conflict; a column
// is the letter times the bytes between two letters. Lines of the table are those of the query's letters, or with 32
// letters, where the query is a profile, those of the rectangle's rows: nothing but the loading knows of it.
template <int kRows, int kLetters> struct Lookup;

template <int kRows> struct Lookup<kRows, 4> {
  static constexpr int kSharedWords = 0;
  u32 scores[kRows];
  __device__ __forceinline__ void load(const u32* table, const Rectangle& job, int row, u32*, int) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) scores[r] = row + r < job.rows ? table[job.query[row + r]] : 0x80808080u;
  }
  __device__ __forceinline__ int operator()(int r, u32 column) const { return (int)permute(scores[r], 0, column); }
};

template <int kRows> struct Lookup<kRows, 8> {
  static constexpr int kSharedWords = 0;
  u32 low[kRows], high[kRows];
  __device__ __forceinline__ void load(const u32* table, const Rectangle& job, int row, u32*, int) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const bool real = row + r < job.rows;
      const int letter = real ? job.query[row + r] : 0;
      low[r] = real ? table[2 * letter] : 0x80808080u;
      high[r] = real ? table[2 * letter + 1] : 0x80808080u;
    }
  }
  __device__ __forceinline__ int operator()(int r, u32 column) const { return (int)permute(low[r], high[r], column); }
};

template <int kRows> struct Lookup<kRows, 32> {
  static_assert(kRows % 4 == 0, "a word holds four rows");
  static constexpr int kLetters = 32;
  static constexpr int kSharedWords = kRows / 4 * kLetters * kWarpLanes;
  const unsigned char* mine;
  u32 word;
  __device__ __forceinline__ void load(const u32* table, const Rectangle& job, int row, u32* shared, int lane) {
    __syncwarp();
    for (int w = 0; w < kRows / 4; ++w) {
      int place[4];  // in the table
#pragma unroll
      for (int b = 0; b < 4; ++b) {
        const int r = row + 4 * w + b;
        place[b] = r >= job.rows ? -1 : job.query != nullptr ? (int)job.query[r] : r;
      }
      for (int four = 0; four < kLetters / 4; ++four) {  // four rows of four letters, turned over
        u32 line[4];
#pragma unroll
        for (int b = 0; b < 4; ++b) line[b] = place[b] >= 0 ? table[place[b] * (kLetters / 4) + four] : 0x80808080u;
        const u32 even_low = permute(line[0], line[1], 0x5140), even_high = permute(line[0], line[1], 0x7362);
        const u32 odd_low = permute(line[2], line[3], 0x5140), odd_high = permute(line[2], line[3], 0x7362);
        u32* to = shared + (w * kLetters + four * 4) * kWarpLanes + lane;
        to[0] = permute(even_low, odd_low, 0x5410);
        to[kWarpLanes] = permute(even_low, odd_low, 0x7632);
        to[2 * kWarpLanes] = permute(even_high, odd_high, 0x5410);
        to[3 * kWarpLanes] = permute(even_high, odd_high, 0x7632);
      }
    }
    __syncwarp();
    mine = reinterpret_cast<const unsigned char*>(shared + lane);
  }
  __device__ __forceinline__ int operator()(int r, u32 column) {
    if (r % 4 == 0) word = *reinterpret_cast<const u32*>(mine + column + r / 4 * (kLetters * kWarpLanes * 4));
    const u32 sign = (r % 4) | 8;
    return (int)permute(word, 0, (r % 4) | sign << 4 | sign << 8 | sign << 12);
  }
};

template <int kRows, int kLetters, bool kIsLocal, bool kDirections> struct Strip {
  static constexpr int kStripRows = kRows * kWarpLanes;
  static constexpr int kWords = kDirections ? kRows / kDirectionRows : 1;
  typedef Lookup<kRows, kLetters> Scores;
  static constexpr int kAboveWords = 4 * (kAhead + 1);  // (H, F, column) that enter the first lane, and one unused
  static constexpr int kSharedWords = Scores::kSharedWords + kAboveWords;
  static_assert(!kDirections || kRows % kDirectionRows == 0, "a word of directions holds eight rows");

  // Take a strip from the first column to the last. All lanes of the warp call it; `shared` is the warp's own.
  static __device__ __forceinline__ void run(const Rectangle& job, int strip, const u32* table, const Link& link,
                                             const Kept& kept, u32* shared, Best& best) {
    const int lane = threadIdx.x % kWarpLanes;
    const int row = strip * kStripRows + lane * kRows;
    const int n = job.n;
    int4* above = reinterpret_cast<int4*>(shared);
    const PairCosts costs{-(job.open + job.extend), -job.extend, job.one, 0u - job.one};

    Scores scores;
    scores.load(table, job, row, shared + kAboveWords, lane);
    int H[kRows], E[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int2 entering = job.enter_column(min(row + r, job.rows - 1));
      H[r] = entering.x, E[r] = entering.y;
    }
    int corner = row == 0 ? job.corner : job.enter_column(min(row, job.rows) - 1).x;
    int F = 0;
    u32 column = 0;  // the letter of the next step
    int4 entering = make_int4(0, 0, 0, 0);  // what enters the first lane in it
    const int last = job.rows - 1 - row;  // the rectangle's last row, seen from this lane
    const bool keeps_row = kept.last_row != nullptr && (strip + 1) * kStripRows >= job.rows;
    u32* directions = kept.directions;

    auto step = [&](int base, int k, bool edge) {
      const int c = base + k - lane;
      int top = __shfl_up_sync(kAllLanes, H[kRows - 1], 1), gap = __shfl_up_sync(kAllLanes, F, 1);
      const u32 letter = column;
      column = __shfl_up_sync(kAllLanes, letter, 1);
      if (lane == 0) top = entering.x, gap = entering.y;
      // for the next step, long before it is needed: scores wait for the letter, and F's chain for H and F
      entering = above[k + 1];
      if (lane == 0) column = (u32)entering.z;
      if (edge && (c < 0 || c >= n)) return;
      int diagonal = corner;
      corner = top;
      F = gap;
      u32 words[kWords] = {};
      int highest = kSmallest;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        u32& word = words[r / kDirectionRows % kWords];
        pair_cell<kIsLocal, kDirections>(diagonal, scores(r, letter), H[r], E[r], F, word, costs);
        if (kIsLocal && (r & 1)) highest = __vimax3_s32(highest, H[r - 1], H[r]);
      }
      if (kIsLocal && highest > best.score) {  // seldom, once the first columns are passed
        best.score = highest, best.column = c;
#pragma unroll
        for (int r = kRows - 1; r >= 0; --r)
          if (H[r] == highest) best.row = row + r;
      }
      if (kDirections) {
#pragma unroll
        for (int w = 0; w < kWords; ++w)
          __stcs(directions + ((size_t)(base + k) * kWords + w) * kWarpLanes + lane, words[w]);
      }
      if (link.out != nullptr && lane == kWarpLanes - 1)
        __stcg(link.out + (c & link.out_mask), make_int2(H[kRows - 1], F));
      if (keeps_row && last >= 0 && last < kRows) {
#pragma unroll
        for (int r = 0; r < kRows; ++r)
          if (r == last) kept.last_row[c] = H[r];
      }
      if (edge) {
        if (kept.last_column != nullptr && c == n - 1) {
#pragma unroll
          for (int r = 0; r < kRows; ++r)
            if (r <= last) kept.last_column[row + r] = H[r];
        }
        if (kept.column_checks != nullptr && ((c + 1) & kept.check_mask) == 0) {
          int2* to = kept.column_checks + (size_t)(c / (int)(kept.check_mask + 1)) * job.rows + row;
#pragma unroll
          for (int r = 0; r < kRows; ++r)
            if (r <= last) to[r] = make_int2(H[r], E[r]);
        }
      }
    };

    int seen = link.in_progress == nullptr ? n : 0;  // columns that are known to be there
    int room = link.out_consumed == nullptr ? n : 0;  // columns that the strip below is known to have finished
    auto fetch = [&](int c) {
      return link.in == nullptr ? job.enter_row(c) : __ldcg(link.in + (c & link.in_mask));
    };
    int2 next = make_int2(0, 0);
    bool has_next = false;
    for (int base = 0; base < n + kWarpLanes - 1; base += kAhead) {
      const int c = base + lane;
      if (base < n && !has_next) {
        const int needed = min(base + kAhead, n);
        while (seen < needed) seen = load_acquire(link.in_progress);
        if (c < n) next = fetch(c);
      }
      // the last lane writes up to column `base` in this round
      if (room < n) {
        while (room < base + 1 - (int)(link.out_mask + 1)) room = load_acquire(link.out_consumed);
      }
      __syncwarp();
      if (c < n) above[lane] = make_int4(next.x, next.y, (int)job.columns[c], 0);
      __syncwarp();
      entering = above[0];
      if (lane == 0) column = (u32)entering.z;
      // look for the next columns while these are being worked on: a strip that is close behind the one above would
      // otherwise wait for two round trips to memory every time
      const int coming = min(base + 2 * kAhead, n);
      int peek = seen;
      if (seen < coming) peek = load_acquire(link.in_progress);
      // from the first lane's last column on, the last column and those that are kept may be among them
      const bool edge = base < kAhead || base + kAhead >= n || (base & kept.check_mask) == 0 ||
                        ((base + kAhead) & kept.check_mask) == 0;
      has_next = false;
      for (int half = 0; half < 2; ++half) {
        if (edge) {
#pragma unroll 1
          for (int k = 0; k < kAhead / 2; ++k) step(base, half * (kAhead / 2) + k, true);
        } else {
#pragma unroll 2
          for (int k = 0; k < kAhead / 2; ++k) step(base, half * (kAhead / 2) + k, false);
        }
        if (half == 0 && base + kAhead < n) {
          seen = max(seen, peek);
          has_next = __all_sync(kAllLanes, seen >= coming);
          if (has_next && c + kAhead < n) next = fetch(c + kAhead);
        }
      }
      // the last lane wrote the columns and tells of them itself, so that its own order is enough
      if (link.out_progress != nullptr && lane == kWarpLanes - 1) store_release(link.out_progress, min(base + 1, n));
    }
    if (link.out_progress != nullptr && lane == kWarpLanes - 1) store_release(link.out_progress, n);
    __syncwarp();
  }
};
