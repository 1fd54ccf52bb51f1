// bundle: packing.
#include "search/bundle.hpp"

#include <algorithm>
#include <utility>

namespace swsearch {

namespace {

// Rows that short queries are packed to. A table of scores takes what 30 to 60 rows take; more rows would leave less
// for threads to share out.
constexpr int64_t kEnoughRows = 1024;

}  // namespace

OwnedBundle::OwnedBundle(std::vector<Query> queries, int bits) : queries_(std::move(queries)) {
  const int64_t most = strip_rows(bits);
  for (size_t n = 0; n < queries_.size(); ++n) {
    const Query& query = queries_[n];
    for (int64_t row = 0; row < query.rows; row += most) {
      const int rows = static_cast<int>(std::min(most, query.rows - row));
      const bool first = row == 0, last = row + rows == query.rows;
      const bool shared = !strips_.empty() && first && last && strips_.back().rows + rows <= most &&
                          pieces_.back().last && pieces_.back().first;
      if (!shared) {
        strips_.push_back({nullptr, 0, nullptr, 0, 0});
      }
      strips_.back().rows += rows;
      strips_.back().n_pieces += 1;
      QueryRows at = query.at.from(row);
      if (query.leaning) at.scores = query.leaning + row * kCodes;
      pieces_.push_back({query.place, at, query.leaning != nullptr, rows, row, first, last});
    }
    rows_ += query.rows;
  }
  // the vectors grow no more from here: strips point into them
  letters_.reserve(strips_.size() * kCodes);
  size_t next = 0;
  for (Strip& strip : strips_) {
    bool occurs[kCodes] = {};
    strip.pieces = pieces_.data() + next;
    next += static_cast<size_t>(strip.n_pieces);
    for (int n = 0; n < strip.n_pieces; ++n) {
      const Piece& piece = strip.pieces[n];
      for (int i = 0; i < piece.rows && !piece.at.scores; ++i) occurs[piece.at.codes[i]] = true;
    }
    strip.letters = letters_.data() + letters_.size();
    for (int code = 0; code < kCodes; ++code) {
      if (occurs[code]) letters_.push_back(static_cast<uint8_t>(code));
    }
    strip.n_letters = static_cast<int>(letters_.data() + letters_.size() - strip.letters);
    most_rows_ = std::max(most_rows_, strip.rows);
    most_pieces_ = std::max(most_pieces_, strip.n_pieces);
  }
}

std::vector<OwnedBundle> make_bundles(const std::vector<OwnedBundle::Query>& queries, int bits) {
  std::vector<OwnedBundle> bundles;
  std::vector<OwnedBundle::Query> together;
  int64_t rows = 0;
  for (const auto& query : queries) {
    if (!together.empty() && rows + query.rows > kEnoughRows) {
      bundles.emplace_back(std::move(together), bits);
      together.clear();
      rows = 0;
    }
    together.push_back(query);
    rows += query.rows;
  }
  if (!together.empty()) bundles.emplace_back(std::move(together), bits);
  return bundles;
}

}  // namespace swsearch
