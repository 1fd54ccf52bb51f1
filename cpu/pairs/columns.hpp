// columns: what alignments that were found hold, column by column: counts, rows of text, BLAST's trace-back operations.
#pragma once

#include <string>
#include <vector>

#include "codes.hpp"
#include "interruption.hpp"

namespace swsearch {

// Alignments of pairs whose sequences lie in two pools.
struct Found {
  const uint8_t* queries;   // codes as they are scored
  const uint8_t* subjects;
  const uint8_t* query_letters;    // ASCII as they are shown, beside the codes; null where nothing is masked
  const uint8_t* subject_letters;
  const int64_t* places;  // four per pair: where its query begins, the query's length, and so for its subject
  const int64_t* starts;  // two per pair: first aligned residue of the query and of the subject
  const int64_t* run_offsets;  // count + 1
  const int64_t* run_lengths;
  const uint8_t* run_operations;  // M, I or D
  int64_t count;
  const int8_t* scores;       // kCodes x kCodes
  const uint8_t* identities;  // 256: for every code that of the residue that it stands for
  const uint8_t* encode;      // 256: for every letter its code
  const uint8_t* decode;      // 256: for every code its letter
  int threads;
  AskToStop interrupted;  // may be empty; asked by the calling thread alone
};

// Whether the runs are runs, and lie within the sequences. What follows takes nothing else.
bool fits(const Found& found);

constexpr int64_t kCounts = 7;

// For each alignment query end, subject end, length, identities, positives, gaps and gaps opened: seven arrays of
// `count` numbers, one array after the other. Throws Interrupted.
void count_columns(const Found& found, int64_t* counts);

// Where rows are to be written: alignment k from offsets[k] on, which are as far apart as the alignments are long.
struct Rows {
  const int64_t* offsets;  // count + 1
  uint8_t *query, *middle, *subject;
};

// Whether the offsets begin at 0 and are as far apart as the alignments are long.
bool as_long(const Found& found, const int64_t* offsets);

// The query's row, the middle line and the subject's row as BLAST prints them. Throws Interrupted.
void write_rows(const Found& found, const Rows& rows);

// Parts that make up all trace-back operations one after the other; `sizes` gets the bytes of each alignment's.
std::vector<std::string> trace_back_operations(const Found& found, int64_t* sizes);

}  // namespace swsearch
