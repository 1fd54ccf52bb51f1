// layout: run by run, row by row.
#include "profiles/layout.hpp"

#include <algorithm>
#include <iterator>

namespace swsearch {

namespace {

constexpr uint8_t kGap = 30;  // GAP of swsearch/profiles/query_alignment.py

}  // namespace

Inserted inserted_in(const Runs& runs) {
  Inserted inserted;
  for (int64_t run = 0; run < runs.offsets[runs.count]; ++run) {
    if (runs.operations[run] != 'D') continue;
    ++inserted.insertions;
    inserted.residues += runs.lengths[run];
  }
  return inserted;
}

void lay_out(const Runs& runs, const uint8_t* residues, int64_t query_length, const Layout& layout) {
  std::fill_n(layout.columns, runs.count * query_length, kGap);
  int64_t* insertion = layout.insertions;
  int64_t inserted = 0;
  for (int64_t k = 0; k < runs.count; ++k) {
    uint8_t* const row = layout.columns + k * query_length;
    int64_t* const span = layout.spans + 2 * k;
    span[0] = span[1] = 0;
    walk(runs, k, [&](uint8_t operation, int64_t n, int64_t a, int64_t b) {
      if (operation == 'M') {
        std::copy_n(residues + b, n, row + a);
        if (span[1] == 0) span[0] = a;
        span[1] = a + n;
      } else if (operation == 'D') {
        std::copy_n(residues + b, n, layout.inserted + inserted);
        const int64_t numbers[] = {k, a, inserted, inserted + n};
        insertion = std::copy(std::begin(numbers), std::end(numbers), insertion);
        inserted += n;
      }
    });
  }
}

}  // namespace swsearch
