// weights: rows weighted by position, and how many independent observations they are.
//
// S. Henikoff and J. G. Henikoff, J. Mol. Biol. 243:574, 1994: a column gives each kind of cell the same weight, which
// the rows that have it share, and a row has the mean of its columns' weights. As in PSI-BLAST (S. F. Altschul et al.,
// Nucleic Acids Res. 25:3389, 1997) each column has weights of its own, from the rows that cover it and the columns
// over which all of these extend, its block. Narrow blocks are widened (K. Oda et al., BMC Bioinformatics 18:288,
// 2017); rows that do not reach the added columns are not counted there.
//
// Sums are those of doubles in the order of rows or columns, so that they are the same on every machine.
#pragma once

#include <cstdint>

#include "profiles/cells.hpp"

namespace swsearch {

struct Blocks {
  int64_t min_columns, max_columns;  // of a block, where there are so many; from 1, at most those of the alignment
};

// What is written, by column.
struct Observations {
  double* weights;       // n_columns x kAbsent: of the rows with each kind of cell; they sum to 1
  double* observations;  // independent sequences that the column amounts to, beside the query
  int64_t* n_rows;       // rows that cover the column, the query included
};

// `background` has the frequencies of the amino acids, from which the number of independent sequences follows.
void observe(const Cells& cells, const Blocks& blocks, const double* background, const Observations& out,
             Patience& patience);

}  // namespace swsearch
