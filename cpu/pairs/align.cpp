// align: a pair's score, end and path.
#include "pairs/grid.hpp"

namespace swsearch {

namespace {

constexpr int kLargeTile = 512, kSmallTile = 256, kFirstTile = 128, kLeastTile = 64;

// Cells of the border where an alignment may end. Of a border that is all there is, (0, 0) is the best.
End border_ends(const Problem& p) {
  End end;
  if (p.local) {
    end.look(0, 0, 0);
    return end;
  }
  if (p.n == 0 || p.subject_end) end.look(p.before(p.m), p.m, 0);
  if (p.m == 0 || p.query_end) end.look(p.above(p.n), 0, p.n);
  if ((p.m == 0 && p.subject_end) || (p.n == 0 && p.query_end)) end.look(0, 0, 0);
  return end;
}

std::vector<int32_t> rest_of(const uint8_t* codes, int64_t length, const int32_t* best) {
  std::vector<int32_t> rest(static_cast<size_t>(length) + 1);
  for (int64_t k = length; k-- > 0;) rest[static_cast<size_t>(k)] = rest[static_cast<size_t>(k) + 1] + best[codes[k]];
  return rest;
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
// the way back.
int choose_tile(const Problem& p, const Settings& settings, double share) {
  if (settings.tile > 0) return settings.tile;
  int tile = share > 0.1 ? kLargeTile : kSmallTile;
  const auto too_large = [&] {
    return static_cast<int64_t>(direction_bytes(tile, tile)) > settings.memory / 8 ||
           !fits_16_bits(tile, p.max_score, p.open, p.extend);
  };
  while (tile > kLeastTile && too_large()) tile /= 2;
  return tile;
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

}  // namespace

void prepare(Problem& p) {
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
  return result;
}

}  // namespace swsearch
