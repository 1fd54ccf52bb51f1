// search: queries against a chunk of a database, exactly, by several threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "search/scan.hpp"

namespace swsearch {

// What a column costs a striped kernel, in what a row of a vector costs the other one: measured on Zen 4 with vectors
// of 16, 32 and 64 bytes, 64 to 5,478 rows and unrelated sequences: 12 to 30, and 1.3 to 1.8 per vector.
constexpr int64_t striped_column(int64_t rows, int lanes) { return 24 + (rows + lanes - 1) / lanes * 3 / 2; }

// How lanes are used: one subject in each, all for one subject, or whatever is less work. The result is the same.
enum class Way { kChosen, kLanes, kStriped };

struct Search {
  Costs costs;
  // queries: codes one after the other, n_queries + 1 offsets; none is empty
  const uint8_t* codes;
  const int64_t* query_offsets;
  int n_queries;
  // null, or kCodes scores of each of their rows; then also null, or what gaps cost at each of them; null with shifts
  const int8_t* row_scores;
  const RowCosts* row_costs;
  // global and semi-global mode: a query's longest subject that lanes of 16 bits hold, one per query
  const int32_t* longest_16;
  // subjects: blocks of 64 as swsearch/blocks.py lays them out, n_blocks + 1 offsets in columns
  const uint8_t* residues;
  const int64_t* column_offsets;
  int64_t n_blocks;
  const int32_t* lengths;  // descending
  int64_t n_subjects;
  // null, or the only subjects to be scored, ascending
  const int64_t* chosen;
  int64_t n_chosen;

  int first_bits;  // local mode: lanes that are tried first; what saturates is scored again in wider ones
  int last_bits;   // and the widest that are tried
  int threads;
  Way way;  // with shifts, always one subject in each lane
  const SearchKernels* kernels;
  // [n_queries][n_subjects, or n_chosen]; out: the scores, and what saturated even in the widest lanes
  int32_t* scores;
  uint8_t* saturated;
  // Asked now and then, by the calling thread, with the cells done since it was last asked; true: stop.
  std::function<bool(int64_t)> stop;
};

struct SearchCounts {
  int64_t pairs[3] = {0, 0, 0};  // scored in lanes of 8, 16 and 32 bits
};

// Throws Interrupted, std::bad_alloc.
SearchCounts run(const Search& search);

// Searches by the calling thread alone, one after the other in the same memory: for many small ones, which callers
// share among threads of their own.
class Scorer {
 public:
  // Kernels return early once `stop` is set; the scores then mean nothing.
  explicit Scorer(const std::atomic<bool>& stop);
  ~Scorer();

  // As above, but of the search's `threads` and `stop` nothing is made.
  SearchCounts run(const Search& search);

 private:
  struct Memory;
  const std::atomic<bool>& stop_;
  const std::unique_ptr<Memory> memory_;
};

}  // namespace swsearch
