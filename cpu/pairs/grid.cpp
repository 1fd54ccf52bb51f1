// grid: the forward pass.
#include "pairs/grid.hpp"

#include <chrono>
#include <exception>
#include <new>
#include <thread>

namespace swsearch {

namespace {

constexpr int64_t kDone = INT64_MAX;
constexpr auto kPatience = std::chrono::milliseconds(100);  // between looks for an interrupt

// The most that an alignment through a cell of an edge can score: `count` cells from (i, j), one column or one row
// apart. Returns early once `enough` is reached.
int64_t potential(const Problem& p, const int32_t* H, int64_t count, int64_t i, int64_t j, int di, int dj,
                  int64_t enough) {
  int64_t best = INT64_MIN;
  for (int64_t k = 0; k < count && best < enough; ++k) best = std::max(best, H[k] + p.gain(i + k * di, j + k * dj));
  return best;
}

}  // namespace

// What the workers of a pass share: each takes the next strip (a row of tiles) and follows the strip above.
struct Grid::Strips {
  explicit Strips(const Region& region)
      : corners(static_cast<size_t>(region.I1 - region.I0)),
        made(static_cast<size_t>(region.J1 - region.J0), region.I0),
        progress(corners.size()),
        begin(corners.size()),
        finish(corners.size()) {
    for (auto& value : progress) value.store(-1);
    for (auto& value : begin) value.store(-1);
  }
  std::vector<int32_t> corners;              // of each strip's first tile
  std::vector<int64_t> made;                 // strip that reads what row_H holds of a tile column
  std::vector<std::atomic<int64_t>> progress;  // tile columns before this one are done
  std::vector<std::atomic<int64_t>> begin;   // first tile column computed, once known
  std::vector<int64_t> finish;               // after the last one
  std::atomic<int64_t> next{0};
  std::atomic<bool> stop{false};
  std::atomic<bool> interrupted{false}, out_of_memory{false};
  int64_t best_above = 0, best_here = INT64_MIN;  // potentials, for the beam
  std::mutex end_lock;
  std::chrono::steady_clock::time_point looked = std::chrono::steady_clock::now();

  void look(const Settings& settings, int worker) {
    if (worker != 0 || !settings.interrupted) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - looked < kPatience) return;
    looked = now;
    if (settings.interrupted()) {
      interrupted = true;
      stop = true;
    }
  }

  template <class Ready>
  bool wait(const Settings& settings, int worker, const Ready& ready) {
    for (int k = 0; !ready(); ++k) {
      if (stop.load(std::memory_order_relaxed)) return false;
      if (k < 64) continue;
      look(settings, worker);
      std::this_thread::yield();
    }
    return true;
  }
};

// A strip that a worker is at: the tile column that comes next, and what the tile before it left.
struct Grid::Strip {
  int64_t I;
  size_t at;      // from the region's first
  int64_t least;  // alignments that score less do not matter
  int64_t J;
  int32_t corner = 0;       // of the next tile
  bool left_alive = false;  // may an alignment that counts come from the left?
  bool left_made = true;    // does the column to the left hold what is to the left of this tile?
};

Grid::Grid(const Problem& problem, const Settings& settings)
    : p_(problem),
      s_(settings),
      T_(settings.tile),
      NI_((problem.m + T_ - 1) / T_),
      NJ_((problem.n + T_ - 1) / T_),
      workspaces_(static_cast<size_t>(settings.threads)) {
  lanes_ = fits_16_bits(T_, p_.max_score, p_.open, p_.extend) ? 0 : 1;
}

Region Grid::whole(int64_t least) const {
  Region region{0, NI_, 0, NJ_, 0, {}, {}, {}, {}, {}, {}};
  for (int64_t j = 1; j <= p_.n; ++j) region.row_H.push_back(p_.above(j));
  for (int64_t i = 1; i <= p_.m; ++i) region.column_H.push_back(p_.before(i));
  region.row_F.assign(region.row_H.size(), kNever);
  region.column_E.assign(region.column_H.size(), kNever);
  for (int64_t J = 0; J < NJ_; ++J) {
    const int32_t* H = &region.row_H[static_cast<size_t>(J * T_)];
    region.row_alive.push_back(potential(p_, H, columns_of(J), 0, J * T_ + 1, 0, 1, least) >= least);
  }
  for (int64_t I = 0; I < NI_; ++I) {
    const int32_t* H = &region.column_H[static_cast<size_t>(I * T_)];
    region.column_alive.push_back(potential(p_, H, rows_of(I), I * T_ + 1, 0, 1, 0, least) >= least);
  }
  return region;
}

// A local alignment may begin anywhere in the tile; the first cell leaves it the most.
bool Grid::restarts(int64_t I, int64_t J, int64_t least) const {
  return p_.local && p_.gain(I * T_, J * T_) >= least;
}

Tile Grid::make_tile(Region& region, int64_t I, int64_t J, int32_t corner) const {
  const size_t row = static_cast<size_t>((I - region.I0) * T_), column = static_cast<size_t>((J - region.J0) * T_);
  return Tile{static_cast<int>(rows_of(I)), static_cast<int>(columns_of(J)), p_.query + I * T_, p_.subject + J * T_,
              p_.scores, p_.by_letter ? p_.by_letter + J * T_ : nullptr, p_.stride,
              p_.max_score, p_.open, p_.extend, p_.local, p_.turned, corner,
              &region.row_H[column], &region.row_F[column], &region.column_H[row], &region.column_E[row],
              0, 0, 0, nullptr};
}

void Grid::forward(Region& region, Pass& pass) {
  Strips strips(region);
  const int64_t n_strips = region.I1 - region.I0;
  for (int64_t I = 0; I < n_strips; ++I) {
    // read now: the strip above overwrites the column before its first tile
    strips.corners[static_cast<size_t>(I)] = I == 0 ? region.corner : region.column_H[static_cast<size_t>(I * T_ - 1)];
  }
  strips.best_above = pass.beam ? region.corner + p_.gain(region.I0 * T_, region.J0 * T_) : 0;
  const int64_t tiles = n_strips * (region.J1 - region.J0);
  const int workers = pass.beam || tiles < 16 ? 1 : static_cast<int>(std::min<int64_t>(s_.threads, n_strips));
  std::vector<std::thread> others;
  others.reserve(static_cast<size_t>(workers));
  try {
    for (int k = 1; k < workers; ++k) others.emplace_back([&, k] { work(region, pass, strips, k); });
  } catch (const std::exception&) {  // system_error, or bad_alloc
    // no more threads to be had: those that there are do it
  }
  work(region, pass, strips, 0);
  for (auto& other : others) other.join();
  cells_ += pass.cells;
  if (strips.out_of_memory) throw std::bad_alloc();
  if (strips.interrupted) throw Interrupted();
}

void Grid::work(Region& region, Pass& pass, Strips& strips, int worker) {
  while (!strips.stop) {
    const int64_t I = region.I0 + strips.next++;
    if (I >= region.I1) return;
    try {
      take(region, pass, strips, I, worker);
    } catch (const std::bad_alloc&) {
      strips.out_of_memory = true;
      strips.stop = true;
    }
  }
}

// Choose the strip's first tile: where nothing comes from the left, that of the strip above. False if all is to stop.
bool Grid::enter(const Region& region, const Pass& pass, Strips& strips, Strip& strip, int worker) const {
  const size_t at = strip.at;
  if (pass.beam) {
    if (at > 0) strips.best_above = strips.best_here;
    strips.best_here = INT64_MIN;
    strip.least = std::max(strip.least, strips.best_above - pass.beam);
  }
  const int64_t i = strip.I * T_, j = region.J0 * T_;
  strip.left_alive = region.column_alive[at];
  if (pass.beam && strip.left_alive) {
    const int64_t most = potential(p_, &region.column_H[at * T_], rows_of(strip.I), i + 1, j, 1, 0, strip.least);
    strip.left_alive = most >= strip.least;
  }
  strip.corner = strips.corners[at];
  if (at == 0 || strip.left_alive || restarts(strip.I, strip.J, strip.least) ||
      strip.corner + p_.gain(i, j) >= strip.least) {
    return true;
  }
  if (!strips.wait(s_, worker, [&] { return strips.begin[at - 1].load(std::memory_order_acquire) >= 0; })) return false;
  strip.J = std::max(strip.J, strips.begin[at - 1].load());
  if (strip.J > region.J0) {
    strip.corner = kNever;
    strip.left_made = false;
  }
  return true;
}

// Compute the strip's next tile, and see what may go on from it. `made`: the strip above computed the tile above.
void Grid::compute(Region& region, Pass& pass, Strips& strips, Strip& strip, bool made, int worker) {
  const int64_t I = strip.I, J = strip.J;
  const size_t at = strip.at, place = static_cast<size_t>(J - region.J0);
  Tile tile = make_tile(region, I, J, strip.corner);
  if (!made) {
    std::fill_n(tile.row_H, tile.columns, kNever);
    std::fill_n(tile.row_F, tile.columns, kNever);
    region.row_alive[place] = 0;
  }
  if (!strip.left_made) {
    std::fill_n(tile.column_H, tile.rows, kNever);
    std::fill_n(tile.column_E, tile.rows, kNever);
  }
  region.column_alive[at] = strip.left_alive;
  if (pass.checkpoints) keep(region, pass, I, J, strip.corner);
  const TileKernel kernel = (p_.local ? s_.kernels->local : s_.kernels->score)[lanes_];
  kernel(tile, workspaces_[static_cast<size_t>(worker)].get(tile.rows, tile.columns));
  if (pass.end && (p_.local || I == NI_ - 1 || J == NJ_ - 1)) {
    const std::lock_guard<std::mutex> guard(strips.end_lock);
    look_for_ends(*pass.end, tile, I, J);
  }
  const int64_t i = I * T_ + tile.rows, j = J * T_ + tile.columns, least = strip.least;
  const int64_t below = potential(p_, tile.row_H, tile.columns, i, J * T_ + 1, 0, 1, pass.beam ? kDone : least);
  region.row_alive[place] = below >= least;
  strip.left_alive = potential(p_, tile.column_H, tile.rows, I * T_ + 1, j, 1, 0, least) >= least;
  strip.left_made = true;
  strips.made[place] = I + 1;
  if (pass.beam) strips.best_here = std::max(strips.best_here, below);
  if (strips.begin[at].load(std::memory_order_relaxed) < 0) strips.begin[at].store(J, std::memory_order_release);
  if ((pass.cells += int64_t{tile.rows} * tile.columns) > pass.most_cells) pass.gave_up = true;
  if (pass.gave_up || pass.full) strips.stop = true;
}

// Take a strip from its first tile to where it and the strip above have ended.
void Grid::take(Region& region, Pass& pass, Strips& strips, int64_t I, int worker) {
  Strip strip{I, static_cast<size_t>(I - region.I0), pass.least, region.J0};
  if (!enter(region, pass, strips, strip, worker)) return;
  const size_t at = strip.at;
  const auto above = [&] { return at == 0 ? kDone : strips.progress[at - 1].load(std::memory_order_acquire); };
  int64_t finish = strip.J;
  for (; strip.J < region.J1; ++strip.J) {
    const int64_t J = strip.J;
    if (above() <= J && !strips.wait(s_, worker, [&] { return above() > J; })) return;
    const size_t place = static_cast<size_t>(J - region.J0);
    const bool made = strips.made[place] == I;
    // read now: the tile overwrites what is above it
    const size_t above_end = place * static_cast<size_t>(T_) + static_cast<size_t>(columns_of(J));
    const int32_t next_corner = made ? region.row_H[above_end - 1] : kNever;
    const bool wanted = (made && region.row_alive[place]) || strip.left_alive || restarts(I, J, strip.least) ||
                        strip.corner + p_.gain(I * T_, J * T_) >= strip.least;
    if (wanted) {
      compute(region, pass, strips, strip, made, worker);
      finish = J + 1;
    } else {
      strip.left_made = false;
    }
    strip.corner = next_corner;
    const bool last = !wanted && at > 0 && above() == kDone && J >= strips.finish[at - 1];
    strips.progress[at].store(J + 1, std::memory_order_release);
    if (last) break;
    if (wanted) strips.look(s_, worker);
    if (wanted && strips.stop) return;
  }
  if (strips.begin[at].load(std::memory_order_relaxed) < 0) {
    strips.begin[at].store(region.J1, std::memory_order_release);
  }
  strips.finish[at] = finish;
  strips.progress[at].store(kDone, std::memory_order_release);
}

void Grid::look_for_ends(End& end, const Tile& tile, int64_t I, int64_t J) const {
  const bool last_row = I == NI_ - 1, last_column = J == NJ_ - 1;
  if (p_.local) {
    if (tile.best > 0) end.look(tile.best, I * T_ + tile.best_row, J * T_ + tile.best_column);
    return;
  }
  if (last_row && p_.subject_end) {
    for (int k = 0; k < tile.columns; ++k) end.look(tile.row_H[k], p_.m, J * T_ + k + 1);
  }
  if (last_column && p_.query_end) {
    for (int k = 0; k < tile.rows; ++k) end.look(tile.column_H[k], I * T_ + k + 1, p_.n);
  }
  if (last_row && last_column) end.look(tile.row_H[tile.columns - 1], p_.m, p_.n);
}

// Keep the edges of a tile that are edges of a checkpoint's region too.
void Grid::keep(const Region& region, Pass& pass, int64_t I, int64_t J, int32_t corner) {
  Checkpoints& all = *pass.checkpoints;
  const int64_t K = all.step, a = (I - region.I0) / K, b = (J - region.J0) / K;
  const bool top = (I - region.I0) % K == 0, left = (J - region.J0) % K == 0;
  if (!top && !left) return;
  Region* into;
  {
    const std::lock_guard<std::mutex> guard(all.lock);
    auto& slot = all.kept[a * ((region.J1 - region.J0 + K - 1) / K) + b];
    if (!slot) {
      const int64_t I0 = region.I0 + a * K, J0 = region.J0 + b * K;
      slot.reset(new Region{I0, std::min(I0 + K, region.I1), J0, std::min(J0 + K, region.J1), kNever,
                            {}, {}, {}, {}, {}, {}});
      const size_t columns = static_cast<size_t>(std::min(slot->J1 * T_, p_.n) - J0 * T_);
      const size_t rows = static_cast<size_t>(std::min(slot->I1 * T_, p_.m) - I0 * T_);
      all.used += static_cast<int64_t>(8 * (rows + columns) + sizeof(Region) + 100) + 2 * K;
      if (all.used > all.limit) pass.full = true;
      slot->row_H.assign(columns, kNever);
      slot->row_F.assign(columns, kNever);
      slot->column_H.assign(rows, kNever);
      slot->column_E.assign(rows, kNever);
      slot->row_alive.assign(static_cast<size_t>(slot->J1 - J0), 0);
      slot->column_alive.assign(static_cast<size_t>(slot->I1 - I0), 0);
    }
    into = slot.get();
  }
  const size_t row = static_cast<size_t>((I - region.I0) * T_), column = static_cast<size_t>((J - region.J0) * T_);
  const size_t to_row = static_cast<size_t>((I - into->I0) * T_), to_column = static_cast<size_t>((J - into->J0) * T_);
  if (top && left) into->corner = corner;
  if (top) {
    std::copy_n(&region.row_H[column], columns_of(J), &into->row_H[to_column]);
    std::copy_n(&region.row_F[column], columns_of(J), &into->row_F[to_column]);
    into->row_alive[static_cast<size_t>(J - into->J0)] = region.row_alive[static_cast<size_t>(J - region.J0)];
  }
  if (left) {
    std::copy_n(&region.column_H[row], rows_of(I), &into->column_H[to_row]);
    std::copy_n(&region.column_E[row], rows_of(I), &into->column_E[to_row]);
    into->column_alive[static_cast<size_t>(I - into->I0)] = region.column_alive[static_cast<size_t>(I - region.I0)];
  }
}

}  // namespace swsearch
