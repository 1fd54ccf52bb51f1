// cells: an alignment as profiles see it: amino acids, other letters, gaps, and where rows are absent.
#pragma once

#include <cstdint>
#include <vector>

#include "interruption.hpp"

namespace swsearch {

// Cells below kAminoAcids are amino acids. kAbsent is a column outside a row's aligned part, or in a long gap.
constexpr int64_t kAminoAcids = 20;
constexpr uint8_t kUnknown = 20, kInnerGap = 21, kAbsent = 22;
constexpr int64_t kKinds = kAbsent + 1;

struct Cells {
  int64_t n_rows = 0, n_columns = 0;
  std::vector<uint8_t> all;  // n_rows x n_columns; the first row is the query, which has no gaps

  const uint8_t* row(int64_t k) const { return all.data() + k * n_columns; }
  uint8_t* row(int64_t k) { return all.data() + k * n_columns; }
};

// The columns from the first residue of a row to the last; both 0 where there is none.
struct Extent {
  int64_t begin = 0, end = 0;
};
Extent extent_of(const uint8_t* row, int64_t n_columns);

// Turn codes, n_rows x n_columns, into cells by a table of 256, whose entries are below kAbsent. A row is absent before
// its first residue, after its last, and from gaps longer than `max_gap_length` columns.
Cells cells_of(const uint8_t* codes, int64_t n_rows, int64_t n_columns, const uint8_t* table, int64_t max_gap_length);

// Asks whether to end, after so much work that a person would notice.
class Patience {
 public:
  explicit Patience(const AskToStop& asked) : asked_(asked) {}
  void spend(int64_t cells) {
    spent_ += cells;
    if (spent_ < kAskAfter) return;
    spent_ = 0;
    if (asked_ && asked_()) throw Interrupted();
  }

 private:
  static constexpr int64_t kAskAfter = int64_t{1} << 30;
  const AskToStop& asked_;
  int64_t spent_ = 0;
};

}  // namespace swsearch
