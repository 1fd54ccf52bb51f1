// diverse: a choice of the rows of an alignment that differ from each other; see `select_diverse` in
// swsearch/profiles/row_filter.py.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/cells.hpp"

namespace swsearch {

struct DiverseRows {
  const uint8_t* columns;  // n rows of n_columns codes
  int64_t n, n_columns;
  uint8_t gap;
  const double* levels;  // identities in per cent, ascending: rows enter one level after the other
  int64_t n_levels;
  int64_t most;  // rows
  int64_t diff;  // rows of each block of 50 columns or more, with residues in half of it; 0: no rows are superfluous
};

// Mark the rows that enter, n of them, with 1; the first always does.
void select(const DiverseRows& asked, uint8_t* entered, Patience& patience);

}  // namespace swsearch
