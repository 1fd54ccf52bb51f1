// further: further local alignments of a pair, each the best that shares no pair of residues with those before.
//
// M. S. Waterman and M. Eggert, J. Mol. Biol. 197:723, 1987: pairs of residues that an alignment used are forbidden,
// and the recurrence is computed again. Where their program, and Huang and Miller's sim, compute only what the
// forbidden pairs change, this computes all of it, once for the scores and in part again for the directions.
#pragma once

#include "pairs/rows.hpp"

namespace swsearch {

// Add the pairs of an alignment.
void use(Used& used, int64_t i, int64_t j, const std::vector<std::pair<int64_t, char>>& cigar);

// The best local alignments without the used pairs, each without those of the ones before, at most `most` that score
// at least `least`, which is at least 1; their pairs are used afterwards.
std::vector<Aligned> further_alignments(const Problem& problem, Used& used, int64_t least, int64_t most,
                                        const AskToStop& interrupted);

}  // namespace swsearch
