// many: a queue of pairs, the largest first.
#include "pairs/many.hpp"

#include <numeric>

#include "pairs/turns.hpp"

namespace swsearch {

namespace {

std::vector<int64_t> largest_first(const Many& many) {
  std::vector<int64_t> order(static_cast<size_t>(many.count));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto cells = [&](int64_t pair) { return many.places[4 * pair + 1] * many.places[4 * pair + 3]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return cells(a) > cells(b); });
  return order;
}

Outcome align_one(const Many& many, const Settings& settings, int64_t pair) {
  const int64_t* place = many.places + 4 * pair;
  Problem problem = many.costs;
  problem.query = many.queries + place[0];
  problem.m = place[1];
  if (problem.rows) problem.rows += place[0] * kCodes;
  if (problem.by_letter) problem.by_letter += place[0];
  if (problem.gaps) problem.gaps += place[0] * kGapCosts;
  problem.subject = many.subjects + place[2];
  problem.n = place[3];
  Outcome outcome;
  try {
    prepare(problem);
    outcome.aligned = align(problem, settings, many.with_path, many.known ? many.known[pair] : INT64_MIN);
  } catch (const MemoryNeeded& error) {
    outcome.needed = error.bytes;
  }
  return outcome;
}

}  // namespace

std::vector<Outcome> align_many(const Many& many) {
  std::vector<Outcome> outcomes(static_cast<size_t>(many.count));
  const std::vector<int64_t> order = largest_first(many);
  take_turns(many.count, many.settings.threads, many.settings.interrupted, [&](int64_t turn, const AskToStop& ask) {
    Settings settings = many.settings;
    settings.threads = 1;
    settings.interrupted = ask;
    const int64_t pair = order[static_cast<size_t>(turn)];
    outcomes[static_cast<size_t>(pair)] = align_one(many, settings, pair);
  });
  return outcomes;
}

}  // namespace swsearch
