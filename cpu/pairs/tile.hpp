// tile: what the kernel of one tile, a rectangle of the matrix, takes and gives.
//
// Scores on the edges are absolute (int32); inside, a tile counts from its best edge score, so that 16-bit
// lanes are enough for sequences of any length.
//
// What kernels see is plain data and static functions, for the reason that codes.hpp gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codes.hpp"

// No iteration of the loop that follows writes what another reads.
#if defined(__clang__)
#define SWSEARCH_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define SWSEARCH_INDEPENDENT _Pragma("GCC ivdep")
#endif

// Lanes of `a` and `b`, counted through both; gcc before 12 has no __builtin_shufflevector.
#if defined(__clang__)
#define SWSEARCH_SHUFFLE(type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SWSEARCH_SHUFFLE(type, a, b, ...) __builtin_shuffle(a, b, type{__VA_ARGS__})
#endif

namespace swsearch {

constexpr int kChunk = 32;                    // lanes are computed in multiples of this
constexpr int kLaneOffset = kChunk - 1;       // row 1 is lane 32: the chunks of a diagonal begin aligned
constexpr int kMargin = 2 * kChunk;           // profile columns on either side that only spare lanes read

// Bits of a cell's direction.
constexpr uint8_t kPair = 0, kGapF = 1, kGapE = 2, kStop = 3, kSourceMask = 3;
constexpr uint8_t kExtendsF = 4, kExtendsE = 8;

static constexpr int rounded(int n) { return (n + kChunk - 1) / kChunk * kChunk; }

struct Tile {
  int rows, columns;
  const uint8_t* query;    // `rows` codes
  const uint8_t* subject;  // `columns` codes
  const int8_t* scores;    // kCodes x kCodes
  const int8_t* by_letter; // null, or scores of a code and a column, one row of `stride` for each code
  int64_t stride;
  int32_t max_score;       // of two letters, at least 0
  int32_t open, extend;
  bool local;
  bool turned;             // the rows are the subject's; ties are decided by what is the query's and the subject's
  int32_t corner;          // H of the cell before the first row and column
  // in: H and F of the row above, H and E of the column before; out: those of the last row and column
  int32_t *row_H, *row_F;        // `columns`
  int32_t *column_H, *column_E;  // `rows`
  // local mode, out: the highest score above 0, then smallest column, then smallest row (row, then column, where
  // the tile is turned), counted from 1; else 0
  int32_t best, best_row, best_column;
  uint8_t* directions;     // null, or direction_bytes(rows, columns)
};

// Cell (row, column), both from 1, of a tile's directions: diagonals one after the other, rows within.
inline size_t direction_at(int rows, int row, int column) {
  return static_cast<size_t>(row + column - 2) * rounded(rows) + (row - 1);
}
inline size_t direction_bytes(int rows, int columns) {
  return static_cast<size_t>(rows + columns) * rounded(rows);
}

// What a kernel works in.
struct TileMemory {
  int8_t* profile;              // (kCodes + 1) * (columns + 2 * kMargin)
  const int8_t** row_profiles;  // rounded(rows)
  int8_t* skewed;               // 16 * rounded(rows)
  void* lanes;                  // kLaneBuffers * lane_count(rows) of the lane's type, aligned for any vector
};
constexpr int kLaneBuffers = 8;
static constexpr int lane_count(int rows) { return rounded(rows) + 2 * kChunk; }

// Buffers of a thread, kept from tile to tile.
class Workspace {
 public:
  TileMemory get(int rows, int columns);

 private:
  std::vector<int8_t> profile_, skewed_;
  std::vector<const int8_t*> row_profiles_;
  std::vector<unsigned char> lanes_;
};

// Bounds of a tile's values, relative to the best score on its edges.
struct Range {
  int64_t never;      // below every value of a cell, and one gap opening more
  int64_t low, high;  // of everything that is computed
};

// A cell's score and the corner's differ by no more than gaps over both sides (down), or (up) by what a row and a
// column more can gain: taking away the last k residues of one sequence leaves at most k residues of the other
// alone, after the rest in one gap, so that H(i, j) - H(i - k, j) <= k * (max_score + extend) + open.
// Edges that were cut off hold `never`: they stay below every true value, and so does all that follows from them.
static inline Range tile_range(int rows, int columns, int32_t max_score, int32_t open, int32_t extend) {
  const int64_t side = int64_t{rows} + columns + 2;
  const int64_t up = 2 * int64_t{open} + side * (int64_t{max_score} + extend);
  const int64_t down = 3 * int64_t{open} + side * extend;
  Range range;
  range.never = -(up + down + open + 2);
  range.low = range.never - down - open - 512;  // a pair scores at least -128
  range.high = up + side * extend + open + 512;  // the kernel adds `extend` per diagonal
  return range;
}

inline bool fits_16_bits(int tile, int32_t max_score, int32_t open, int32_t extend) {
  const Range range = tile_range(tile, tile, max_score, open, extend);
  return range.low > INT16_MIN && range.high - range.never < INT16_MAX;
}

using TileKernel = void (*)(Tile&, const TileMemory&);

// What an instruction set has for pairs.
struct PairKernels {
  // [16 bits, 32 bits]
  TileKernel score[2], local[2];
  TileKernel trace[2], trace_local[2];
  TileKernel turned[2], turned_local[2];  // `trace` and `trace_local` of a tile that is turned
};

}  // namespace swsearch
