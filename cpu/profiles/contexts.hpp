// contexts: residues that are expected in columns with such neighbours.
//
// Each of a library's contexts is a window of 13 columns; how much a residue in each column speaks for a context, and
// the frequencies of amino acids in its centre, come from training (benchmarks/training/contexts.py). Whole numbers
// all through: sums are exact, in any order, and so the same on every machine.
#pragma once

#include <cstdint>

#include "profiles/cells.hpp"

namespace swsearch {

constexpr int64_t kContextReach = 6, kContextWidth = 2 * kContextReach + 1;
constexpr int32_t kShareUnits = 32;  // a column that holds one residue alone has so many shares of it

struct Contexts {
  int64_t n_contexts;
  const int8_t* weights;       // kContextWidth x kAminoAcids x n_contexts; see swsearch/profiles/contexts.py for bounds
  const int16_t* bias;         // n_contexts, in the units of weights
  const double* frequencies;   // n_contexts x kAminoAcids: whole numbers up to 2^20
  const double* exponentials;  // of so many units below the best context: whole numbers up to 2^20; the last is 0
  int64_t n_exponentials;
};

// Write the sums of frequencies, n_columns x kAminoAcids, of columns with these shares, n_columns x kAminoAcids.
void predict(const Contexts& contexts, const uint8_t* shares, int64_t n_columns, double* sums, Patience& patience);

}  // namespace swsearch
