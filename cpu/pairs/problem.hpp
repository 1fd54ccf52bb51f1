// problem: a pair, its costs and free ends, and what follows from them alone.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "interruption.hpp"
#include "pairs/tile.hpp"

namespace swsearch {

// Gap costs of a position: of leaving it over, and of a gap in the query after it.
enum : int { kDeletionOpen, kDeletionExtend, kInsertionOpen, kInsertionExtend, kGapCosts };

struct Problem {
  const uint8_t* query;
  const uint8_t* subject;
  int64_t m, n;
  const int8_t* scores;  // kCodes x kCodes
  int32_t max_score;     // of two letters, at least 0
  int32_t open, extend;
  bool local;
  bool query_start, query_end, subject_start, subject_end;  // which ends are free
  // [k]: the most that the residues from k on can score, each with the best letter of the other sequence, or alone
  std::vector<int32_t> query_rest, subject_rest;
  // Scores by position of the query, in place of those by its letters: `rows` has m x kCodes, and `by_letter` the same
  // the other way round, of position k and letter a at [a * stride + k]. Null where there are none.
  const int8_t* rows = nullptr;
  const int8_t* by_letter = nullptr;
  int64_t stride = 0;
  // Gap costs by position of the query, kGapCosts for each; null where they are the same everywhere.
  const int16_t* gaps = nullptr;
  // Whether query and subject, m and n and their ends have changed places, so that scores by position lie along the
  // columns, as the kernel takes them.
  bool turned = false;

  int64_t gap(int64_t length) const { return length > 0 ? open + length * extend : 0; }
  // H of row 0 and of column 0.
  int32_t above(int64_t j) const { return subject_start ? 0 : static_cast<int32_t>(-gap(j)); }
  int32_t before(int64_t i) const {
    if (query_start) return 0;
    if (!gaps || i == 0) return static_cast<int32_t>(-gap(i));
    int64_t cost = gaps[kDeletionOpen];
    for (int64_t k = 0; k < i; ++k) cost += gaps[k * kGapCosts + kDeletionExtend];
    return static_cast<int32_t>(-cost);
  }

  // What an alignment can still gain after cell (i, j), in H, E or F: at best every residue of either rest is in
  // its best pair. What the longer rest has more stands in gaps, unless its end is free; their opening is not
  // counted, since the cell may lie in a gap.
  int64_t gain(int64_t i, int64_t j) const {
    const int64_t most = std::min(query_rest[static_cast<size_t>(i)], subject_rest[static_cast<size_t>(j)]);
    if (local) return most;
    const int64_t a = m - i, b = n - j;
    const int64_t left = a > b ? (query_end ? 0 : a - b) : (subject_end ? 0 : b - a);
    return most - left * extend;
  }
};

// The best cell to end: highest score, then smallest place in the subject, then smallest place in the query.
struct End {
  int64_t score = INT64_MIN, i = 0, j = 0;
  bool turned = false;  // the subject's places are the rows
  void look(int64_t score_, int64_t i_, int64_t j_) {
    if (score_ < score) return;
    const bool is_later = turned ? i_ > i || (i_ == i && j_ >= j) : j_ > j || (j_ == j && i_ >= i);
    if (score_ == score && is_later) return;
    score = score_;
    i = i_;
    j = j_;
  }
};

struct MemoryNeeded {
  int64_t bytes;  // that would be enough, or nearly
};

// How to go about it; no choice changes the result.
struct Settings {
  int tile;           // rows and columns of a tile; 0: chosen
  int64_t memory;     // bytes for tables
  int threads;
  int64_t beam;       // how far below the best a first pass follows; 0: no first pass
  const PairKernels* kernels;
  AskToStop interrupted;  // asked between tiles; may be empty
};

// Follows one alignment backwards.
struct Path {
  int64_t i, j;
  char state = 'M';  // the table it is in: H, F (I) or E (D)
  bool done = false;
  std::vector<std::pair<int64_t, char>> runs;  // last one first
  void push(char operation, int64_t count = 1) {
    if (runs.empty() || runs.back().second != operation) runs.emplace_back(0, operation);
    runs.back().first += count;
  }
};

struct Aligned {
  int64_t score, i, j;  // where the first operation begins
  std::vector<std::pair<int64_t, char>> cigar;
  int64_t cells = 0;    // computed, directions included
  int passes = 0;
};

// Make a problem ready for `align`: turn it where scores are by position, and fill in its rests.
void prepare(Problem& problem);

// Cells of the border where an alignment may end. Of a border that is all there is, (0, 0) is the best.
End border_ends(const Problem& problem);

// Go on from the border to the beginning, where what is left over there is paid for.
void finish(const Problem& problem, Path& path);

// `known`: a score that the pair reaches, or INT64_MIN; one that it does not reach costs time and changes nothing.
Aligned align(const Problem& problem, const Settings& settings, bool with_path, int64_t known = INT64_MIN);

}  // namespace swsearch
