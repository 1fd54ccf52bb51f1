// back: the way back through a grid, from checkpoint to checkpoint.
#include "pairs/grid.hpp"

namespace swsearch {

int64_t Grid::choose_step(const Region& region, int64_t memory, double share) const {
  const int64_t rows = region.I1 - region.I0, columns = region.J1 - region.J0;
  for (int64_t K = 1;; K *= 2) {
    const double a = static_cast<double>((rows + K - 1) / K), b = static_cast<double>((columns + K - 1) / K);
    const double count = std::max(a * b * share, std::max(a, b));
    const double bytes = count * static_cast<double>(16 * K * T_ + static_cast<int64_t>(sizeof(Region)) + 100 + 2 * K);
    if (bytes <= static_cast<double>(memory) || K >= std::max(rows, columns)) return K;
  }
}

bool Grid::back(Region&& region, Path& path, int64_t memory, int64_t least) {
  region.I1 = (path.i - 1) / T_ + 1;
  region.J1 = (path.j - 1) / T_ + 1;
  const int64_t size = std::max(region.I1 - region.I0, region.J1 - region.J0);
  if (size == 1) {
    through_tile(region, path);
    return true;
  }
  for (int64_t K = choose_step(region, memory / 2, 1.0); K < size; K *= 2) {
    Checkpoints checkpoints;
    checkpoints.step = K;
    checkpoints.limit = memory / 2;
    Pass pass;
    pass.least = least;
    pass.checkpoints = &checkpoints;
    Region copy = region;
    forward(copy, pass);
    if (pass.full) continue;
    return back_through(region, checkpoints, path, memory / 2, least);
  }
  return false;
}

bool Grid::back_through(const Region& frame, Checkpoints& checkpoints, Path& path, int64_t memory, int64_t least) {
  const int64_t K = checkpoints.step, width = (frame.J1 - frame.J0 + K - 1) / K;
  while (!path.done && path.i > frame.I0 * T_ && path.j > frame.J0 * T_) {
    const int64_t a = ((path.i - 1) / T_ - frame.I0) / K, b = ((path.j - 1) / T_ - frame.J0) / K;
    const auto found = checkpoints.kept.find(a * width + b);
    Region region = std::move(*found->second);
    checkpoints.kept.erase(found);
    if (!back(std::move(region), path, memory, least)) return false;
  }
  return true;
}

void Grid::through_tile(Region& region, Path& path) {
  const int64_t i0 = region.I0 * T_, j0 = region.J0 * T_;
  Tile tile = make_tile(region, region.I0, region.J0, region.corner);
  tile.rows = static_cast<int>(path.i - i0);
  tile.columns = static_cast<int>(path.j - j0);
  trace(tile);
  follow(tile, i0, j0, path);
}

void Grid::through_whole(Region& region, End& end, Path& path) {
  Tile tile = make_tile(region, 0, 0, region.corner);
  trace(tile);
  look_for_ends(end, tile, 0, 0);
  path.i = end.i;
  path.j = end.j;
  follow(tile, 0, 0, path);
}

void Grid::trace(Tile& tile) {
  cells_ += int64_t{tile.rows} * tile.columns;
  // not a vector, which would write zeros first
  const int rows = static_cast<int>(rows_of(0)), columns = static_cast<int>(columns_of(0));
  if (!directions_) directions_.reset(new uint8_t[direction_bytes(rows, columns)]);
  tile.directions = directions_.get();
  const PairKernels& all = *s_.kernels;
  const auto& as_given = p_.local ? all.trace_local : all.trace;
  const auto& turned = p_.local ? all.turned_local : all.turned;
  (p_.turned ? turned : as_given)[lanes_](tile, workspaces_[0].get(tile.rows, tile.columns));
}

void Grid::follow(const Tile& tile, int64_t i0, int64_t j0, Path& path) const {
  int row = static_cast<int>(path.i - i0), column = static_cast<int>(path.j - j0);
  while (row > 0 && column > 0 && !path.done) {
    const uint8_t direction = tile.directions[direction_at(tile.rows, row, column)];
    if (path.state == 'M') {
      switch (direction & kSourceMask) {
        case kPair:
          path.push('M');
          --row;
          --column;
          break;
        case kGapF:
          path.state = 'I';
          break;
        case kGapE:
          path.state = 'D';
          break;
        default:
          path.done = true;
      }
    } else if (path.state == 'I') {
      path.push('I');
      --row;
      if (!(direction & kExtendsF)) path.state = 'M';
    } else {
      path.push('D');
      --column;
      if (!(direction & kExtendsE)) path.state = 'M';
    }
  }
  path.i = i0 + row;
  path.j = j0 + column;
}

}  // namespace swsearch
