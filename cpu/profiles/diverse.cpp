// diverse: see diverse.hpp.
#include "profiles/diverse.hpp"

#include <algorithm>

namespace swsearch {

namespace {

constexpr int64_t kBlock = 255;  // columns that are counted in a byte

// The columns in which two rows have the same residue.
int64_t identical(const uint8_t* a, const uint8_t* b, int64_t n_columns, uint8_t gap) {
  int64_t total = 0;
  for (int64_t begin = 0; begin < n_columns; begin += kBlock) {
    const int64_t end = std::min(n_columns, begin + kBlock);
    uint8_t count = 0;
    for (int64_t k = begin; k < end; ++k) count = static_cast<uint8_t>(count + ((a[k] == b[k]) & (a[k] != gap)));
    total += count;
  }
  return total;
}

}  // namespace

void select(const DiverseRows& asked, uint8_t* entered) {
  const int64_t n = asked.n, n_columns = asked.n_columns;
  const auto row = [&](int64_t k) { return asked.columns + k * n_columns; };
  std::vector<double> residues(static_cast<size_t>(n)), nearest(static_cast<size_t>(n), 0.0);
  for (int64_t k = 0; k < n; ++k) {
    const int64_t gaps = std::count(row(k), row(k) + n_columns, asked.gap);
    residues[static_cast<size_t>(k)] = static_cast<double>(std::max<int64_t>(n_columns - gaps, 1));
  }
  std::fill_n(entered, n, uint8_t{0});
  int64_t n_entered = 0;
  const auto enter = [&](int64_t place, int64_t first) {
    entered[place] = 1;
    ++n_entered;
    for (int64_t k = first; k < n; ++k) {
      if (entered[k]) continue;
      double& most = nearest[static_cast<size_t>(k)];
      const double same = static_cast<double>(100 * identical(row(k), row(place), n_columns, asked.gap));
      most = std::max(most, same / residues[static_cast<size_t>(k)]);
    }
  };
  if (n > 0) enter(0, 1);
  for (int64_t level = 0; level < asked.n_levels; ++level) {
    const bool is_last = level + 1 == asked.n_levels;
    for (int64_t k = 1; k < n && n_entered < asked.most; ++k) {
      if (entered[k]) continue;
      if (is_last && asked.levels[level] >= 100.0) {  // whatever is left
        entered[k] = 1;
        ++n_entered;
      } else if (nearest[static_cast<size_t>(k)] < asked.levels[level]) {
        enter(k, is_last ? k + 1 : 1);  // rows that were passed by the last level cannot enter any more
      }
    }
  }
}

}  // namespace swsearch
