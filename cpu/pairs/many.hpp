// many: pairs side by side, each on one thread.
#pragma once

#include "pairs/problem.hpp"

namespace swsearch {

struct Many {
  const uint8_t* queries;
  const uint8_t* subjects;
  const int64_t* places;  // four per pair: where its query begins, the query's length, and so for its subject
  const int64_t* known;   // one per pair, or null: a score that it reaches, which spares looking for one
  int64_t count;
  Problem costs;          // the pairs' costs and free ends; it has no sequences, but scores and costs by position of
                          // all residues of the queries, where these have some
  Settings settings;      // `threads` pairs at a time, `memory` bytes for each of them
  bool with_path;
};

struct Outcome {
  Aligned aligned{};  // all 0 where there is no result
  int64_t needed = 0;  // if not 0: there is no result, because it takes so many bytes
};

// One per pair, in their order. Threads take the largest pair that is left, so that they end together; `interrupted`
// is asked by the calling thread alone. Throws Interrupted.
std::vector<Outcome> align_many(const Many& many);

}  // namespace swsearch
