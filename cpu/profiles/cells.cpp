// cells: codes into cells, and the aligned part of each row.
#include "profiles/cells.hpp"

#include <algorithm>

namespace swsearch {

Extent extent_of(const uint8_t* row, int64_t n_columns) {
  Extent extent{0, n_columns};
  while (extent.begin < n_columns && row[extent.begin] >= kInnerGap) ++extent.begin;
  if (extent.begin == n_columns) return {};
  while (row[extent.end - 1] >= kInnerGap) --extent.end;
  return extent;
}

Cells cells_of(const uint8_t* codes, int64_t n_rows, int64_t n_columns, const uint8_t* table, int64_t max_gap_length) {
  Cells cells{n_rows, n_columns, std::vector<uint8_t>(static_cast<size_t>(n_rows * n_columns))};
  std::transform(codes, codes + n_rows * n_columns, cells.all.begin(), [&](uint8_t code) { return table[code]; });
  for (int64_t k = 0; k < n_rows; ++k) {
    uint8_t* const row = cells.row(k);
    const Extent extent = extent_of(row, n_columns);
    std::fill(row, row + extent.begin, kAbsent);
    std::fill(row + extent.end, row + n_columns, kAbsent);
    if (max_gap_length >= n_columns) continue;
    for (int64_t at = extent.begin; at < extent.end; ++at) {
      const int64_t begin = at;
      while (row[at] == kInnerGap) ++at;  // a residue follows each gap
      if (at - begin > max_gap_length) std::fill(row + begin, row + at, kAbsent);
    }
  }
  return cells;
}

}  // namespace swsearch
