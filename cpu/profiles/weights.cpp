// weights: stretches of columns, the block around each, and the weights of its rows.
#include "profiles/weights.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace swsearch {

namespace {

// Weights stay while fewer than one in so many rows begin or end: of 1,000 rows one begins in nearly every column, and
// weights of its own for each column would take several times as long to differ by nothing.
constexpr int64_t kRowsPerChange = 32;

constexpr int64_t kMaxObservations = 400;  // beyond these, all amino acids are expected in a column

constexpr int64_t kSideBySide = 4;  // rows whose sums do not wait for one another

// How many kinds of amino acids 0, 1, 2, ... random residues are expected to be, ascending.
std::vector<double> expected_kinds(const double* background) {
  std::vector<double> missing(kAminoAcids, 1.0), expected{0.0};
  for (int64_t n = 1; n <= kMaxObservations; ++n) {
    double sum = 0.0;
    for (int64_t k = 0; k < kAminoAcids; ++k) sum += missing[k] *= 1.0 - background[k];
    expected.push_back(kAminoAcids - sum);
  }
  return expected;
}

class Observer {
 public:
  Observer(const Cells& cells, const Blocks& blocks, const double* background, const Observations& out)
      : cells_(cells),
        blocks_(blocks),
        out_(out),
        expected_(expected_kinds(background)),
        extents_(cells.n_rows),
        is_here_(cells.n_rows),
        counts_(cells.n_columns * kKinds),
        shares_(cells.n_columns * kKinds),
        weights_(cells.n_rows),
        sums_(cells.n_columns * kKinds) {}

  void run(Patience& patience) {
    for (int64_t k = 0; k < cells_.n_rows; ++k) extents_[k] = extent_of(cells_.row(k), cells_.n_columns);
    for (const auto& [begin, end] : stretches()) {
      gather(begin, end);
      std::fill(out_.observations + begin, out_.observations + end, 0.0);
      const auto [left, right] = rows_.size() > 1 ? block_of(begin, end) : std::pair(begin, end);
      weigh(left, right);
      if (rows_.size() > 1) {
        const double most = std::min(independent(left, right), static_cast<double>(rows_.size()));
        std::fill(out_.observations + begin, out_.observations + end, std::max(0.0, most - 1.0));
      }
      spread(begin, end);
      patience.spend(static_cast<int64_t>(rows_.size()) * (right - left));
    }
  }

 private:
  // Count the rows of each column, and divide the columns into stretches that the same rows cover, but for one in
  // kRowsPerChange of many.
  std::vector<std::pair<int64_t, int64_t>> stretches() {
    const int64_t n_columns = cells_.n_columns;
    std::vector<int64_t> changes(n_columns);  // rows that begin or end before each column
    std::fill(out_.n_rows, out_.n_rows + n_columns, 0);
    for (int64_t k = 0; k < cells_.n_rows; ++k) {
      const uint8_t* const row = cells_.row(k);
      for (int64_t c = 0; c < n_columns; ++c) out_.n_rows[c] += row[c] != kAbsent;
      for (int64_t c = 1; c < n_columns; ++c) changes[c] += (row[c] == kAbsent) != (row[c - 1] == kAbsent);
    }
    std::vector<std::pair<int64_t, int64_t>> found;
    int64_t begin = 0, changed = 0;
    for (int64_t c = 1; c < n_columns; ++c) {
      changed += changes[c];
      if (changes[c] == 0 || changed * kRowsPerChange <= out_.n_rows[c]) continue;
      found.emplace_back(begin, c);
      begin = c;
      changed = 0;
    }
    if (n_columns > 0) found.emplace_back(begin, n_columns);
    return found;
  }

  // Find the rows that are somewhere in a stretch, and count the kinds of all of their cells. Stretches that follow one
  // another have most rows in common.
  void gather(int64_t begin, int64_t end) {
    rows_.clear();
    for (int64_t k = 0; k < cells_.n_rows; ++k) {
      const uint8_t* const row = cells_.row(k);
      const bool is_here = std::any_of(row + begin, row + end, [](uint8_t cell) { return cell != kAbsent; });
      if (is_here) rows_.push_back(k);
      if (is_here == (is_here_[k] != 0)) continue;
      is_here_[k] = is_here;
      const int64_t change = is_here ? 1 : -1;
      for (int64_t c = extents_[k].begin; c < extents_[k].end; ++c) counts_[c * kKinds + row[c]] += change;
    }
  }

  // The columns over which all rows of a stretch extend, widened or narrowed; it holds the stretch.
  std::pair<int64_t, int64_t> block_of(int64_t begin, int64_t end) const {
    int64_t left = 0, right = cells_.n_columns;
    for (const int64_t k : rows_) {
      left = std::max(left, extents_[k].begin);
      right = std::min(right, extents_[k].end);
    }
    left = std::min(left, begin);
    right = std::max(right, end);
    if (right - left < blocks_.min_columns) {
      left = std::max<int64_t>(0, left - (blocks_.min_columns - (right - left) + 1) / 2);
      right = std::min(cells_.n_columns, left + blocks_.min_columns);
      left = std::max<int64_t>(0, right - blocks_.min_columns);
    } else if (right - left > std::max(blocks_.max_columns, end - begin)) {
      const int64_t margin = std::max<int64_t>(0, blocks_.max_columns - (end - begin)) / 2;
      left = std::max(left, begin - margin);
      right = std::min(right, end + margin);
    }
    return {left, right};
  }

  // Weight the rows over a block; their weights sum to 1.
  void weigh(int64_t left, int64_t right) {
    for (int64_t c = left; c < right; ++c) {
      const int64_t* const counts = counts_.data() + c * kKinds;
      int64_t present = 0, kinds = 0;
      for (int64_t k = 0; k < kAbsent; ++k) present += counts[k], kinds += counts[k] > 0;
      for (int64_t k = 0; k < kAbsent; ++k) {
        if (counts[k] == 0) continue;
        shares_[c * kKinds + k] = static_cast<double>(present) / static_cast<double>(kinds * counts[k]);
      }
    }
    const int64_t n = static_cast<int64_t>(rows_.size());
    double sum = 0.0;
    for (int64_t first = 0; first < n; first += kSideBySide) {
      const uint8_t* rows[kSideBySide];
      double totals[kSideBySide] = {};
      for (int64_t k = 0; k < kSideBySide; ++k) rows[k] = cells_.row(rows_[std::min(first + k, n - 1)]);
      for (int64_t c = left; c < right; ++c) {
        for (int64_t k = 0; k < kSideBySide; ++k) totals[k] += shares_[c * kKinds + rows[k][c]];
      }
      for (int64_t k = 0; k < std::min(kSideBySide, n - first); ++k) {
        const int64_t covered = right - left - std::count(rows[k] + left, rows[k] + right, kAbsent);
        sum += weights_[first + k] = totals[k] / static_cast<double>(covered);
      }
    }
    for (int64_t k = 0; k < n; ++k) weights_[k] /= sum;
  }

  // How many random sequences would show, on average, as many kinds of amino acids as the more varied half of the
  // columns does (S. F. Altschul et al., Nucleic Acids Res. 37:815, 2009); at least 1.
  double independent(int64_t left, int64_t right) const {
    std::vector<int64_t> kinds;
    for (int64_t c = left; c < right; ++c) {
      const int64_t* const counts = counts_.data() + c * kKinds;
      kinds.push_back(std::count_if(counts, counts + kAminoAcids, [](int64_t count) { return count > 0; }));
    }
    const auto half = kinds.begin() + static_cast<int64_t>(kinds.size() / 2);
    std::nth_element(kinds.begin(), half, kinds.end());
    int64_t sum = 0;
    for (auto kind = half; kind != kinds.end(); ++kind) sum += *kind;
    const double mean = static_cast<double>(sum) / static_cast<double>(kinds.end() - half);
    const int64_t above = std::upper_bound(expected_.begin(), expected_.end(), mean) - expected_.begin();
    if (above > kMaxObservations) return kMaxObservations;
    const double part = (expected_[above] - mean) / (expected_[above] - expected_[above - 1]);
    return std::max(1.0, static_cast<double>(above) - part);
  }

  // Add the weights of the rows up in each column of a stretch.
  void spread(int64_t begin, int64_t end) {
    std::fill(sums_.begin() + begin * kKinds, sums_.begin() + end * kKinds, 0.0);
    for (size_t k = 0; k < rows_.size(); ++k) {
      const uint8_t* const row = cells_.row(rows_[k]);
      for (int64_t c = begin; c < end; ++c) sums_[c * kKinds + row[c]] += weights_[k];
    }
    for (int64_t c = begin; c < end; ++c) {
      double sum = 0.0;
      for (int64_t k = 0; k < kAbsent; ++k) sum += sums_[c * kKinds + k];
      for (int64_t k = 0; k < kAbsent; ++k) out_.weights[c * kAbsent + k] = sums_[c * kKinds + k] / sum;
    }
  }

  const Cells& cells_;
  const Blocks blocks_;
  const Observations out_;
  const std::vector<double> expected_;
  std::vector<Extent> extents_;                 // of each row
  std::vector<int64_t> rows_;                   // those of a stretch, ascending
  std::vector<uint8_t> is_here_;                // of each row: whether it is among these
  std::vector<int64_t> counts_;                 // of each column and kind: how many of these have it
  std::vector<double> shares_, weights_, sums_;  // of each column and kind; of each of these rows; of column and kind
};

}  // namespace

void observe(const Cells& cells, const Blocks& blocks, const double* background, const Observations& out,
             Patience& patience) {
  Observer(cells, blocks, background, out).run(patience);
}

}  // namespace swsearch
