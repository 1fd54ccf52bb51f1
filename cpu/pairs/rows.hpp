// rows: the recurrence row by row, in 32 bits, where what a cell takes depends on its place: pairs of residues that
// may not be used, and gap costs by position of the query.
#pragma once

#include "pairs/problem.hpp"

namespace swsearch {

// The subject residues that each query residue may not be paired with any more, ascending.
using Used = std::vector<std::vector<int32_t>>;

// Align a problem that is not turned. Of equal alignments the one that swsearch/reference.py states. Time: m * n cells,
// and for the path those cells again that lie in the alignment's rows and before its end. Throws MemoryNeeded.
Aligned align_by_rows(const Problem& problem, const Settings& settings, bool with_path);

// The best local alignment without the used pairs, if it scores at least `least`, which is at least 1; else one of
// score 0 without operations. Memory: for each subject residue 152 bytes and 6 sqrt(m) more.
Aligned align_unused(const Problem& problem, const Used& used, int64_t least, const AskToStop& interrupted);

}  // namespace swsearch
