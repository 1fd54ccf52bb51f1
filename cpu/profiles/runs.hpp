// runs: alignments of one query with subjects of a pool, as runs of columns.
#pragma once

#include <cstdint>

#include "codes.hpp"

namespace swsearch {

struct Runs {
  const int64_t* query_starts;    // of each alignment: its first residue of the query
  const int64_t* subject_starts;  // its first residue of the pool
  const int64_t* offsets;         // count + 1: where its runs begin
  const int64_t* lengths;         // of each run, 1 or more
  const uint8_t* operations;      // M (a pair), I (a query residue opposite a gap) or D (a subject residue)
  int64_t count;
};

// Whether the runs are runs, and lie within the query and the pool. What follows takes nothing else.
bool fits(const Runs& runs, int64_t query_length, int64_t n_residues);

// One alignment: each(operation, n, a, b) for every run, where a and b are the next residues of query and pool.
template <class Each>
void walk(const Runs& runs, int64_t k, Each&& each) {
  int64_t a = runs.query_starts[k], b = runs.subject_starts[k];
  for (int64_t run = runs.offsets[k]; run < runs.offsets[k + 1]; ++run) {
    const int64_t n = runs.lengths[run];
    const uint8_t operation = runs.operations[run];
    each(operation, n, a, b);
    a += operation != 'D' ? n : 0;
    b += operation != 'I' ? n : 0;
  }
}

}  // namespace swsearch
