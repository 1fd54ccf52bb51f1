// further: what alignments that were found have used.
#include "pairs/further.hpp"

namespace swsearch {

void use(Used& used, int64_t i, int64_t j, const std::vector<std::pair<int64_t, char>>& cigar) {
  for (const auto& [length, operation] : cigar) {
    if (operation == 'M') {
      for (int64_t k = 0; k < length; ++k) {
        std::vector<int32_t>& row = used[static_cast<size_t>(i + k)];
        const int32_t column = static_cast<int32_t>(j + k);
        row.insert(std::lower_bound(row.begin(), row.end(), column), column);
      }
    }
    if (operation != 'D') i += length;
    if (operation != 'I') j += length;
  }
}

std::vector<Aligned> further_alignments(const Problem& problem, Used& used, int64_t least, int64_t most,
                                        const AskToStop& interrupted) {
  std::vector<Aligned> found;
  while (static_cast<int64_t>(found.size()) < most) {
    Aligned next = align_unused(problem, used, least, interrupted);
    if (next.cigar.empty()) break;
    use(used, next.i, next.j, next.cigar);
    found.push_back(std::move(next));
  }
  return found;
}

}  // namespace swsearch
