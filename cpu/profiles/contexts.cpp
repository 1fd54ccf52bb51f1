// contexts: each column's scores with all contexts, and the mean of these by their exponentials.
#include "profiles/contexts.hpp"

#include <algorithm>
#include <vector>

namespace swsearch {

void predict(const Contexts& contexts, const uint8_t* shares, int64_t n_columns, double* sums, Patience& patience) {
  const int64_t n = contexts.n_contexts;
  std::vector<int32_t> all_scores(static_cast<size_t>(n));
  std::vector<int16_t> of_place(static_cast<size_t>(n));  // at most 127 kShareUnits, since shares sum to no more
  int32_t* const scores = all_scores.data();
  int16_t* const sum_of_place = of_place.data();
  for (int64_t column = 0; column < n_columns; ++column) {
    patience.spend(n * kContextWidth);
    for (int64_t k = 0; k < n; ++k) scores[k] = contexts.bias[k] * kShareUnits;
    for (int64_t place = 0; place < kContextWidth; ++place) {
      const int64_t at = column + place - kContextReach;
      if (at < 0 || at >= n_columns) continue;
      std::fill_n(sum_of_place, n, int16_t{0});
      for (int64_t letter = 0; letter < kAminoAcids; ++letter) {
        const int16_t share = shares[at * kAminoAcids + letter];
        if (share == 0) continue;
        const int8_t* const weights = contexts.weights + (place * kAminoAcids + letter) * n;
        for (int64_t k = 0; k < n; ++k) sum_of_place[k] = static_cast<int16_t>(sum_of_place[k] + share * weights[k]);
      }
      for (int64_t k = 0; k < n; ++k) scores[k] += sum_of_place[k];
    }
    const int32_t best = *std::max_element(scores, scores + n);
    double* const sum = sums + column * kAminoAcids;
    std::fill_n(sum, kAminoAcids, 0.0);
    for (int64_t k = 0; k < n; ++k) {
      const int64_t below = (best - scores[k] + kShareUnits / 2) / kShareUnits;
      if (below >= contexts.n_exponentials) continue;
      const double weight = contexts.exponentials[below];
      const double* const frequencies = contexts.frequencies + k * kAminoAcids;
      for (int64_t letter = 0; letter < kAminoAcids; ++letter) sum[letter] += weight * frequencies[letter];
    }
  }
}

}  // namespace swsearch
