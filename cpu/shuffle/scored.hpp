// scored: scores of queries with shuffled copies of sequences, which live no longer than it takes to score them.
#pragma once

#include <cstdint>

#include "interruption.hpp"
#include "search/search.hpp"
#include "shuffle/shuffle.hpp"

namespace swsearch {

struct ScoredCopies {
  Costs costs;
  // queries: codes one after the other, n_queries + 1 offsets; of each its longest subject in lanes of 16 bits, see
  // Search
  const uint8_t* queries;
  const int64_t* query_offsets;
  int64_t n_queries;
  const int8_t* row_scores;   // of the queries' rows, see Search
  const RowCosts* row_costs;
  const int32_t* longest_16;
  // sequences that are shuffled: codes one after the other, n_sequences + 1 offsets
  const uint8_t* codes;
  const int64_t* offsets;
  int64_t n_sequences;
  // which query with which sequence: [n_pairs][2]
  const int64_t* pairs;
  int64_t n_pairs;
  // copies first_copy to first_copy + n_copies - 1 of the sequence of each pair, see shuffle.hpp; windows in residues
  int32_t first_copy, n_copies;
  int64_t window;

  int first_bits, last_bits;  // as for Search
  int threads;
  Way way;
  const SearchKernels* kernels;
  int32_t* scores;  // [n_pairs][n_copies]; out
  AskToStop asked;  // of the calling thread alone
};

// Throws Interrupted, std::bad_alloc, and std::overflow_error where a score does not fit the widest lanes.
void run(const ScoredCopies& asked);

}  // namespace swsearch
