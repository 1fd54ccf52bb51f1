// layout: subjects in the columns of a query.
#pragma once

#include "profiles/runs.hpp"

namespace swsearch {

// What is written; an insertion is a run of D.
struct Layout {
  uint8_t* columns;     // query_length of each alignment: codes, or kGap
  int64_t* spans;       // two of each: the first column with a residue, and one past the last; 0 and 0 without any
  int64_t* insertions;  // four of each: alignment, columns before it, and begin and end in `inserted`
  uint8_t* inserted;    // codes
};

// How many insertions there are, and residues in them.
struct Inserted {
  int64_t insertions = 0, residues = 0;
};
Inserted inserted_in(const Runs& runs);

// Write the residues of a pool that alignments pair with the query, and those opposite its gaps.
void lay_out(const Runs& runs, const uint8_t* residues, int64_t query_length, const Layout& layout);

}  // namespace swsearch
