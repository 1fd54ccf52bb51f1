// diverse: see diverse.hpp.
#include "profiles/diverse.hpp"

#include <algorithm>

namespace swsearch {

namespace {

constexpr int64_t kBlock = 255;    // columns that are counted in a byte
constexpr int64_t kStretch = 50;  // columns of a stretch that has a depth, at least

// The columns of a range in which two rows have the same residue.
int64_t identical(const uint8_t* a, const uint8_t* b, int64_t first, int64_t last, uint8_t gap) {
  int64_t total = 0;
  for (int64_t begin = first; begin < last; begin += kBlock) {
    const int64_t end = std::min(last, begin + kBlock);
    uint8_t count = 0;
    for (int64_t k = begin; k < end; ++k) count = static_cast<uint8_t>(count + ((a[k] == b[k]) & (a[k] != gap)));
    total += count;
  }
  return total;
}

// The rows that cover each stretch of columns, and how many of them entered.
class Depths {
 public:
  explicit Depths(const DiverseRows& asked)
      : most_(asked.diff), count_(asked.diff ? std::max<int64_t>(asked.n_columns / kStretch, 1) : 0) {
    covered_.resize(static_cast<size_t>(asked.n * count_));
    depths_.resize(static_cast<size_t>(count_));
    for (int64_t at = 0; at < asked.n * count_; ++at) {
      const int64_t stretch = at % count_;
      const int64_t begin = stretch * asked.n_columns / count_, end = (stretch + 1) * asked.n_columns / count_;
      const uint8_t* row = asked.columns + at / count_ * asked.n_columns;
      covered_[static_cast<size_t>(at)] = 2 * std::count(row + begin, row + end, asked.gap) <= end - begin;
    }
  }
  // Whether a row covers a stretch that lacks rows.
  bool lacks(int64_t row) const {
    for (int64_t k = 0; k < count_; ++k) {
      if (covers(row, k) && depths_[static_cast<size_t>(k)] < most_) return true;
    }
    return count_ == 0;
  }
  void add(int64_t row) {
    for (int64_t k = 0; k < count_; ++k) depths_[static_cast<size_t>(k)] += covers(row, k);
  }

 private:
  bool covers(int64_t row, int64_t stretch) const { return covered_[static_cast<size_t>(row * count_ + stretch)]; }

  int64_t most_, count_;
  std::vector<uint8_t> covered_;
  std::vector<int64_t> depths_;
};

}  // namespace

void select(const DiverseRows& asked, uint8_t* entered, Patience& patience) {
  const int64_t n = asked.n, n_columns = asked.n_columns;
  const auto row = [&](int64_t k) { return asked.columns + k * n_columns; };
  Depths depths(asked);
  std::vector<double> residues(static_cast<size_t>(n)), nearest(static_cast<size_t>(n), 0.0);
  std::vector<int64_t> begins(static_cast<size_t>(n)), ends(static_cast<size_t>(n));  // of what is not gaps
  for (int64_t k = 0; k < n; ++k) {
    const size_t at = static_cast<size_t>(k);
    const int64_t gaps = std::count(row(k), row(k) + n_columns, asked.gap);
    residues[at] = static_cast<double>(std::max<int64_t>(n_columns - gaps, 1));
    while (begins[at] < n_columns && row(k)[begins[at]] == asked.gap) ++begins[at];
    for (ends[at] = n_columns; ends[at] > begins[at] && row(k)[ends[at] - 1] == asked.gap;) --ends[at];
  }
  std::fill_n(entered, n, uint8_t{0});
  int64_t n_entered = 0;
  const auto enter = [&](int64_t place, int64_t first) {
    entered[place] = 1;
    ++n_entered;
    depths.add(place);
    patience.spend((n - first) * n_columns);
    for (int64_t k = first; k < n; ++k) {
      if (entered[k] || !depths.lacks(k)) continue;  // stretches never lack rows again
      const size_t at = static_cast<size_t>(k), other = static_cast<size_t>(place);
      const int64_t begin = std::max(begins[at], begins[other]), end = std::min(ends[at], ends[other]);
      const double same = static_cast<double>(100 * identical(row(k), row(place), begin, end, asked.gap));
      nearest[at] = std::max(nearest[at], same / residues[at]);
    }
  };
  if (n > 0) enter(0, 1);
  for (int64_t level = 0; level < asked.n_levels; ++level) {
    const bool is_last = level + 1 == asked.n_levels;
    const bool is_open = is_last && asked.levels[level] >= 100.0;  // to whatever is left
    for (int64_t k = 1; k < n && n_entered < asked.most; ++k) {
      if (entered[k] || !(is_open || nearest[static_cast<size_t>(k)] < asked.levels[level])) continue;
      if (depths.lacks(k)) enter(k, is_open ? n : is_last ? k + 1 : 1);  // the last level goes through them once
    }
  }
}

}  // namespace swsearch
