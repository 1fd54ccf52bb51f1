// contexts: each column's scores with all contexts, and the mean of these by their exponentials.
#include "profiles/contexts.hpp"

#include <algorithm>
#include <vector>

namespace swsearch {

void predict(const Contexts& contexts, const uint8_t* shares, int64_t n_columns, double* sums, Patience& patience) {
  const int64_t n = contexts.n_contexts;
  std::vector<int16_t> all_scores(static_cast<size_t>(n));
  std::vector<int32_t> all_near(static_cast<size_t>(n));
  int16_t* const scores = all_scores.data();
  int32_t* const near = all_near.data();
  for (int64_t column = 0; column < n_columns; ++column) {
    patience.spend(n * kContextWidth);
    for (int64_t k = 0; k < n; ++k) scores[k] = static_cast<int16_t>(contexts.bias[k] * kShareUnits);
    for (int64_t place = 0; place < kContextWidth; ++place) {
      const int64_t at = column + place - kContextReach;
      if (at < 0 || at >= n_columns) continue;
      for (int64_t letter = 0; letter < kAminoAcids; ++letter) {
        const int16_t share = shares[at * kAminoAcids + letter];
        if (share == 0) continue;
        const int8_t* const weights = contexts.weights + (place * kAminoAcids + letter) * n;
        for (int64_t k = 0; k < n; ++k) scores[k] = static_cast<int16_t>(scores[k] + share * weights[k]);
      }
    }
    const int32_t best = *std::max_element(scores, scores + n);
    const int32_t least = best - (static_cast<int32_t>(contexts.n_exponentials) - 1) * kShareUnits;
    int64_t n_near = 0;  // collected without a branch, which would be guessed wrong half of the time
    for (int64_t k = 0; k < n; ++k) {
      near[n_near] = static_cast<int32_t>(k);
      n_near += scores[k] >= least;
    }
    double sum[kAminoAcids] = {};
    for (int64_t each = 0; each < n_near; ++each) {
      const int64_t k = near[each];
      const double weight = contexts.exponentials[(best - scores[k] + kShareUnits / 2) / kShareUnits];
      const double* const frequencies = contexts.frequencies + k * kAminoAcids;
      for (int64_t letter = 0; letter < kAminoAcids; ++letter) sum[letter] += weight * frequencies[letter];
    }
    std::copy_n(sum, kAminoAcids, sums + column * kAminoAcids);
  }
}

}  // namespace swsearch
