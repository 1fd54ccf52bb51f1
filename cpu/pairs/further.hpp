// further: further local alignments of a pair, each the best that shares no pair of residues with those before.
//
// M. S. Waterman and M. Eggert, J. Mol. Biol. 197:723, 1987: pairs of residues that an alignment used are forbidden,
// and the recurrence is computed again. Where their program, and Huang and Miller's sim, compute only what the
// forbidden pairs change, this computes all of it, once for the scores and in part again for the directions.
#pragma once

#include "pairs/problem.hpp"

namespace swsearch {

// The subject residues that each query residue may not be paired with any more, ascending.
using Used = std::vector<std::vector<int32_t>>;

// Add the pairs of an alignment.
void use(Used& used, int64_t i, int64_t j, const std::vector<std::pair<int64_t, char>>& cigar);

// The best local alignment without the used pairs, if it scores at least `least`, which is at least 1; else one of
// score 0 without operations. Of equal ones the one that swsearch/reference.py states. Time: m * n cells,
// and then those cells again that lie in the alignment's rows and before its end. Memory: for each subject residue
// 152 bytes and 6 sqrt(m) more.
Aligned next_alignment(const Problem& problem, const Used& used, int64_t least, const AskToStop& interrupted);

}  // namespace swsearch
