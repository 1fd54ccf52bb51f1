// bundle: queries cut and packed into strips.
#pragma once

#include <vector>

#include "search/scan.hpp"

namespace swsearch {

// A bundle and what it points to.
class OwnedBundle {
 public:
  // Queries, at least one, none empty: their place, rows and length. Either all have scores by row or none. `leaning`
  // is null, or their scores for a piece that leans.
  struct Query {
    int place;
    QueryRows at;
    int64_t rows;
    const int8_t* leaning;
  };
  OwnedBundle(std::vector<Query> queries, int bits);
  OwnedBundle(OwnedBundle&&) = default;  // a copy's strips would point into the original

  const std::vector<Query>& queries() const { return queries_; }
  Bundle view() const { return {strips_.data(), static_cast<int>(strips_.size())}; }
  int64_t rows() const { return rows_; }
  int most_rows() const { return most_rows_; }      // of a strip
  int most_pieces() const { return most_pieces_; }  // of a strip

 private:
  std::vector<Query> queries_;
  std::vector<Piece> pieces_;
  std::vector<uint8_t> letters_;
  std::vector<Strip> strips_;
  int64_t rows_ = 0;
  int most_rows_ = 0, most_pieces_ = 0;
};

// Pack queries: short ones together, so that they share the tables of scores.
std::vector<OwnedBundle> make_bundles(const std::vector<OwnedBundle::Query>& queries, int bits);

}  // namespace swsearch
