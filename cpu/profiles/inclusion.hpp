// inclusion: which alignments of a query enter its next profile, and which part of each.
#pragma once

#include "profiles/runs.hpp"

namespace swsearch {

struct Trim {
  Runs runs;
  const int8_t* scores;     // kCodes of each row of the query
  const int16_t* costs;     // four of each row: a deletion's opening and extension, and so an insertion's
  const uint8_t* subjects;  // the pool as it is scored, codes below kCodes
  int64_t min_score;        // of each column, in thousandths of a matrix unit
};

constexpr int64_t kTrimmed = 6;

// Alignments as they are left.
struct Trimmed {
  int64_t* numbers;  // query start, query end, subject start, subject end, columns, gaps: six arrays of `count`
  int64_t* offsets;  // count + 1
  int64_t* lengths;  // room for all runs
  uint8_t* operations;
};

// Cut each alignment back to the part of the largest sum of scores less `min_score` per column: the shortest of equal
// parts, and no column where none is above 0.
void trim_ends(const Trim& trim, const Trimmed& trimmed);

constexpr uint8_t kCore = 1, kCharged = 2;

struct Selection {
  Runs runs;
  const uint8_t* query;  // codes that are not masked
  int64_t query_length;
  const uint8_t* subjects;  // the pool, not masked
  const uint8_t* kinds;     // 256: for every code whether it is kCore or kCharged
  int64_t min_pairs;
  double min_percent;          // of 100 times the pairs: what the percentage of the query's positions comes to
  double most_low_complexity;  // percentage of the windows of either side; infinity allows any
  double most_coiled_coil;
};

// Set a flag for each alignment that may enter.
void select_hits(const Selection& selection, uint8_t* flags);

}  // namespace swsearch
