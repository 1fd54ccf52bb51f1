// scan: queries against one block of 64 subjects, what the kernels take and give.
//
// What kernels see is plain data, for the reason that codes.hpp gives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "codes.hpp"

#if defined(__clang__)
#define SWSEARCH_UNROLL _Pragma("unroll")
#else
#define SWSEARCH_UNROLL _Pragma("GCC unroll 8")
#endif

namespace swsearch {

constexpr int kBlockLanes = 64;

enum class Mode { kLocal, kGlobal, kSemiglobal, kShifted };  // kShifted: local, and the query is a strand's codons

struct Costs {
  const int8_t* scores;  // kCodes x kCodes
  int32_t first, extend;  // of a gap's first residue, and of each other one
  Mode mode;
  int32_t most_first = 0, most_extend = 0;  // of rows that have costs of their own
  int32_t shift = 0;                        // kShifted: of a shift of the frame
};

// What a gap's first residue and each other one cost at a row of a query: where the row itself is left over, and where
// residues of the subject stand after it.
struct RowCosts {
  int16_t deletion_first, deletion_extend, insertion_first, insertion_extend;
};

// Where a query's rows begin.
struct QueryRows {
  const uint8_t* codes;
  const int8_t* scores;   // null, or kCodes of each row, in place of those that costs have for its code
  const RowCosts* costs;  // null, or in place of those that are the same for all; only with scores

  QueryRows from(int64_t row) const {
    return {codes + row, scores ? scores + row * kCodes : nullptr, costs ? costs + row : nullptr};
  }
};

// Rows of one query, whole or in part.
struct Piece {
  int query;
  QueryRows at;
  // Local mode, rows with scores of their own: of the columns that are computed at a time, all values of the k-th one are
  // kept higher by k * extend, so that what extending a gap costs that runs along a row is taken once for all of them.
  // The scores then hold `extend` more.
  bool leans;
  int rows;
  int64_t rows_before;  // of the query, in strips above
  bool first, last;     // of the query's pieces
};

// Rows that are computed with one table of scores: pieces of short queries, or one of a long one.
struct Strip {
  const Piece* pieces;
  int n_pieces;
  const uint8_t* letters;  // that occur, unless rows have scores of their own
  int n_letters;
  int rows;
};

// Whole queries, strip by strip.
struct Bundle {
  const Strip* strips;
  int n_strips;
};

struct Block {
  const uint8_t* residues;  // columns x kBlockLanes
  const int32_t* lengths;   // `lanes`, descending
  int lanes;
};

struct LaneScore {
  int32_t score;
  bool saturated;
};

// What a kernel works in, each aligned for any vector; T is the lane's type.
struct ScanMemory {
  void* table;     // scan_table_lanes(columns) * sizeof(T) bytes
  void* state;     // most rows of a strip * 2 * kBlockLanes * sizeof(T)
  void* boundary;  // where the bundle has several strips: the block's columns * kBlockLanes * sizeof(T), twice, or
                   // kShiftBoundary times with shifts
  void* best;      // most pieces of a strip * kBlockLanes * sizeof(T)
  LaneScore* found;  // out: [query of the bundle][kBlockLanes]
};

// Score every query of a bundle against every subject of a block; returns early when `stop` is set.
using ScanKernel = void (*)(const Costs&, const Bundle&, const Block&, const ScanMemory&,
                            const std::atomic<bool>& stop);

// Defined in search.cpp and not inline, for the same reason.
bool is_set(const std::atomic<bool>& stop);

// What a striped kernel works in, aligned likewise.
struct StripedMemory {
  size_t lanes;    // striped_lanes(...)
  uint8_t* codes;  // lanes
  void* profile;   // kCodes * lanes * sizeof(T) bytes
  void* state;     // 2 * lanes * sizeof(T)
};

// Score one query, not empty and without costs by row, against one subject; what it returns means nothing when `stop`
// is set.
using StripedKernel = LaneScore (*)(const Costs&, const QueryRows& query, int rows, const uint8_t* subject, int columns,
                                    const StripedMemory&, const std::atomic<bool>& stop);

// What an instruction set has for searches.
struct SearchKernels {
  int vector_bytes;
  int columns;  // that are computed at a time
  // [8, 16, 32 bits]; global and semi-global scores are never computed in 8
  ScanKernel local[3], global[3], semiglobal[3];
  StripedKernel striped_local[3], striped_global[3], striped_semiglobal[3];
  ScanKernel shifted[3];

  int lanes(int bits) const { return 8 * vector_bytes / bits; }
  ScanKernel of(Mode mode, int bits) const {
    return (mode == Mode::kShifted ? shifted : choose(local, global, semiglobal, mode))[place_of(bits)];
  }
  StripedKernel striped(Mode mode, int bits) const {
    return choose(striped_local, striped_global, striped_semiglobal, mode)[place_of(bits)];
  }
  static constexpr int place_of(int bits) { return bits == 8 ? 0 : bits == 16 ? 1 : 2; }

 private:
  template <class Kernel>
  static const Kernel* choose(const Kernel* local, const Kernel* global, const Kernel* semiglobal, Mode mode) {
    return mode == Mode::kLocal ? local : mode == Mode::kGlobal ? global : semiglobal;
  }
};

// Lanes of a query's rows in vectors of kLanes, filled up to whole columns of a block.
constexpr size_t striped_lanes(int rows, int lanes) {
  const size_t used = static_cast<size_t>((rows + lanes - 1) / lanes * lanes);
  return (used + kBlockLanes - 1) / kBlockLanes * kBlockLanes;
}

// Lanes of a table of scores and of the edges that are kept after it.
constexpr size_t scan_table_lanes(int columns) {
  return static_cast<size_t>(kCodes * columns + 4 * columns + 3 + columns) * kBlockLanes;
}

// With shifts: rows after which what is held in registers comes round, and what a strip passes on of each column.
constexpr int kShiftRows = 12, kShiftBoundary = 7;

// Most rows of a strip. What is kept of a row, H and E of 64 lanes, then takes half of a small L2 cache.
constexpr int strip_rows(int bits) { return 2016 * 8 / bits; }
static_assert(strip_rows(32) % kShiftRows == 0 && strip_rows(16) % kShiftRows == 0 && strip_rows(8) % kShiftRows == 0);

}  // namespace swsearch
