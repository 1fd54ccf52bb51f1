// align: a pair's score, end and path.
#include "pairs/grid.hpp"
#include "pairs/rows.hpp"

namespace swsearch {

namespace {

constexpr int kLargeTile = 512, kSmallTile = 256, kFirstTile = 128, kLeastTile = 64;

std::vector<int32_t> rest_of(const uint8_t* codes, int64_t length, const int32_t* best) {
  std::vector<int32_t> rest(static_cast<size_t>(length) + 1);
  for (int64_t k = length; k-- > 0;) rest[static_cast<size_t>(k)] = rest[static_cast<size_t>(k) + 1] + best[codes[k]];
  return rest;
}

// Whether some position has other gap costs than the rest of the problem.
bool gaps_vary(const Problem& p) {
  for (int64_t k = 0; k < p.m; ++k) {
    const int16_t* costs = p.gaps + k * kGapCosts;
    if (costs[kDeletionOpen] != p.open || costs[kInsertionOpen] != p.open) return true;
    if (costs[kDeletionExtend] != p.extend || costs[kInsertionExtend] != p.extend) return true;
  }
  return false;
}

// Let query and subject change places.
void turn(Problem& p) {
  std::swap(p.query, p.subject);
  std::swap(p.m, p.n);
  std::swap(p.query_start, p.subject_start);
  std::swap(p.query_end, p.subject_end);
  p.turned = true;
}

// Say an alignment of a turned problem in terms of its query and its subject.
void turn_back(Aligned& result) {
  std::swap(result.i, result.j);
  for (auto& [length, operation] : result.cigar) {
    if (operation != 'M') operation = operation == 'I' ? 'D' : 'I';
  }
}

// The rests of a turned problem: of each letter its best column, of each column its best letter among the rows'.
void rests_by_position(Problem& p) {
  bool in_rows[kCodes] = {};
  for (int64_t k = 0; k < p.m; ++k) in_rows[p.query[k]] = true;
  int32_t best_of_letter[kCodes] = {};
  std::vector<int8_t> best(static_cast<size_t>(p.n), 0);
  for (int letter = 0; letter < kCodes; ++letter) {
    if (!in_rows[letter]) continue;
    const int8_t* scores = p.by_letter + letter * p.stride;
    int8_t most = 0;
    for (int64_t k = 0; k < p.n; ++k) most = std::max(most, scores[k]);
    for (int64_t k = 0; k < p.n; ++k) best[static_cast<size_t>(k)] = std::max(best[static_cast<size_t>(k)], scores[k]);
    best_of_letter[letter] = most;
  }
  p.query_rest = rest_of(p.query, p.m, best_of_letter);
  p.subject_rest.assign(static_cast<size_t>(p.n) + 1, 0);
  for (int64_t k = p.n; k-- > 0;) {
    p.subject_rest[static_cast<size_t>(k)] = p.subject_rest[static_cast<size_t>(k) + 1] + best[static_cast<size_t>(k)];
  }
}

// A score that can be reached, found by following the best tiles only: paths below it need not be looked at.
int64_t reachable(const Problem& problem, Settings settings, int64_t& cells) {
  settings.tile = settings.tile > 0 ? std::max(settings.tile / 4, 1) : kFirstTile;
  settings.threads = 1;
  Grid grid(problem, settings);
  End end = border_ends(problem);
  Pass pass;
  pass.beam = settings.beam;
  pass.most_cells = problem.m * problem.n / 8;
  pass.end = &end;
  Region region = grid.whole(INT64_MIN);
  grid.forward(region, pass);
  cells += grid.cells();
  return end.score;
}

// About what share of the matrix can matter: to reach diagonal k and come back costs 2 k extensions and k pairs.
double share_that_matters(const Problem& p, int64_t least) {
  if (least == INT64_MIN) return 1.0;
  const double loss = static_cast<double>(p.gain(0, 0) - least);
  const double pair = static_cast<double>(p.query_rest[0]) / static_cast<double>(p.m);
  const double width = 2 * loss / std::max(1.0, pair + 2 * p.extend);
  return std::min(1.0, width / static_cast<double>(std::max(p.m, p.n)));
}

// Large tiles run at 5.7 Gcells/s, smaller ones at 4.3, but leave out more, and less of them is computed again for
// the way back. Where all fits one tile, nothing is computed again.
int choose_tile(const Problem& p, const Settings& settings, double share) {
  if (settings.tile > 0) return settings.tile;
  const auto too_large = [&](int64_t tile) {
    return static_cast<int64_t>(direction_bytes(static_cast<int>(tile), static_cast<int>(tile))) > settings.memory / 8 ||
           !fits_16_bits(static_cast<int>(tile), p.max_score, p.open, p.extend);
  };
  const int64_t whole = std::max(p.m, p.n);
  if (whole <= kLargeTile && !too_large(whole)) return static_cast<int>(whole);
  int tile = share > 0.1 ? kLargeTile : kSmallTile;
  while (tile > kLeastTile && too_large(tile)) tile /= 2;
  return tile;
}

}  // namespace

End border_ends(const Problem& p) {
  End end;
  end.turned = p.turned;
  if (p.local) {
    end.look(0, 0, 0);
    return end;
  }
  if (p.n == 0 || p.subject_end) end.look(p.before(p.m), p.m, 0);
  if (p.m == 0 || p.query_end) end.look(p.above(p.n), 0, p.n);
  if ((p.m == 0 && p.subject_end) || (p.n == 0 && p.query_end)) end.look(0, 0, 0);
  return end;
}

void finish(const Problem& p, Path& path) {
  if (path.done || p.local) return;
  if (path.i == 0 && !p.subject_start && path.j > 0) {
    path.push('D', path.j);
    path.j = 0;
  } else if (path.j == 0 && !p.query_start && path.i > 0) {
    path.push('I', path.i);
    path.i = 0;
  }
}

void prepare(Problem& p) {
  if (p.gaps && !gaps_vary(p)) p.gaps = nullptr;
  if (p.gaps) return;  // rows of tables need no rests
  if (p.by_letter) {
    turn(p);
    rests_by_position(p);
    return;
  }
  bool in_query[kCodes] = {}, in_subject[kCodes] = {};
  for (int64_t k = 0; k < p.m; ++k) in_query[p.query[k]] = true;
  for (int64_t k = 0; k < p.n; ++k) in_subject[p.subject[k]] = true;
  int32_t best_of_query[kCodes] = {}, best_of_subject[kCodes] = {};
  for (int a = 0; a < kCodes; ++a) {
    for (int b = 0; b < kCodes; ++b) {
      const int32_t score = p.scores[a * kCodes + b];
      if (in_subject[b]) best_of_query[a] = std::max(best_of_query[a], score);
      if (in_query[a]) best_of_subject[b] = std::max(best_of_subject[b], score);
    }
  }
  p.query_rest = rest_of(p.query, p.m, best_of_query);
  p.subject_rest = rest_of(p.subject, p.n, best_of_subject);
}

Aligned align(const Problem& problem, const Settings& wanted, bool with_path, int64_t known) {
  if (problem.gaps) return align_by_rows(problem, wanted, with_path);
  const int64_t m = problem.m, n = problem.n;
  Aligned result{};
  End end = border_ends(problem);
  Path path{};
  if (m > 0 && n > 0) {
    Settings settings = wanted;
    int64_t least = known;
    const int64_t first = settings.tile > 0 ? settings.tile : kSmallTile;
    if (least == INT64_MIN && settings.beam > 0 && m * n >= 16 * first * first) {
      least = reachable(problem, settings, result.cells);
      result.passes += 1;
    }
    const double share = share_that_matters(problem, least);
    settings.tile = choose_tile(problem, settings, share);
    // rests, edges and a copy, and one tile's directions are needed whatever else is kept; then two regions by two
    // at every level, of half the memory that the level above left
    const int64_t fixed = 20 * (m + n) + static_cast<int64_t>(direction_bytes(settings.tile, settings.tile));
    const MemoryNeeded needed{fixed + 96 * (m + n) + 16'384};
    const int64_t memory = settings.memory - fixed;
    if (memory <= 0) throw needed;
    Grid grid(problem, settings);
    Region region = grid.whole(least);
    if (with_path && grid.tile_rows() == 1 && grid.tile_columns() == 1) {
      grid.through_whole(region, end, path);
      result.passes += 1;
    } else {
      Checkpoints checkpoints;
      for (int64_t K = grid.choose_step(region, memory / 2, share);; K *= 2) {
        checkpoints.kept.clear();
        checkpoints.used = 0;
        checkpoints.step = K;
        checkpoints.limit = memory / 2;
        Pass pass;
        pass.least = least;
        pass.checkpoints = with_path ? &checkpoints : nullptr;
        pass.end = &end;
        Region copy = region;
        grid.forward(copy, pass);
        result.passes += 1;
        if (!pass.full) break;
        if (K >= std::max(grid.tile_rows(), grid.tile_columns())) throw needed;
      }
      if (end.score < least) return align(problem, wanted, with_path);  // what was known is not so
      path.i = end.i;
      path.j = end.j;
      if (with_path && !grid.back_through(region, checkpoints, path, memory / 2, least)) throw needed;
    }
    result.cells += grid.cells();
  } else {
    path.i = end.i;
    path.j = end.j;
  }
  if (with_path) finish(problem, path);
  result.score = end.score;
  result.i = path.i;
  result.j = path.j;
  result.cigar.assign(path.runs.rbegin(), path.runs.rend());
  if (problem.turned) turn_back(result);
  return result;
}

}  // namespace swsearch
