// grid: the matrix as tiles. A forward pass over a rectangle of tiles, which leaves out what cannot matter and keeps
// checkpoints; and the way back from one cell through them.
#pragma once

#include <memory>
#include <unordered_map>

#include "pairs/problem.hpp"

namespace swsearch {

// A rectangle of tiles [I0, I1) x [J0, J1) with the cells that it is computed from.
struct Region {
  int64_t I0, I1, J0, J1;
  int32_t corner;
  std::vector<int32_t> row_H, row_F;        // above, one per column
  std::vector<int32_t> column_H, column_E;  // before, one per row
  std::vector<uint8_t> row_alive;           // one per tile column: may an alignment that counts pass here?
  std::vector<uint8_t> column_alive;        // one per tile row
};

// Regions of `step` x `step` tiles, by their place in the grid of such regions.
struct Checkpoints {
  int64_t step = 0;
  int64_t limit = 0, used = 0;  // bytes
  std::mutex lock;
  std::unordered_map<int64_t, std::unique_ptr<Region>> kept;
};

struct Pass {
  int64_t least = INT64_MIN;      // alignments that score less do not matter
  int64_t beam = 0;               // if not 0: nor do those this far below the best of the tile row above
  int64_t most_cells = INT64_MAX; // give up beyond
  Checkpoints* checkpoints = nullptr;
  End* end = nullptr;
  // out
  std::atomic<int64_t> cells{0};
  std::atomic<bool> full{false};  // the checkpoints outgrew their limit
  std::atomic<bool> gave_up{false};
};

class Grid {
 public:
  Grid(const Problem& problem, const Settings& settings);

  int64_t tile_rows() const { return NI_; }
  int64_t tile_columns() const { return NJ_; }
  int64_t cells() const { return cells_; }

  // The whole matrix with its border.
  Region whole(int64_t least) const;

  // Compute the region's tiles; its edges are overwritten. Throws Interrupted.
  void forward(Region& region, Pass& pass);

  // Choose a step for checkpoints so that about `share` of the region's tiles fit half of the memory.
  int64_t choose_step(const Region& region, int64_t memory, double share) const;

  // Follow the path, which is in the region, until it leaves it or ends; `least` as it was in the forward pass.
  // False if the memory is not enough.
  bool back(Region&& region, Path& path, int64_t memory, int64_t least);
  // The same, from checkpoints that a pass has kept already.
  bool back_through(const Region& frame, Checkpoints& checkpoints, Path& path, int64_t memory, int64_t least);
  // Where the matrix is one tile: its end, and the whole path, from one pass.
  void through_whole(Region& region, End& end, Path& path);

 private:
  struct Strips;
  struct Strip;
  int64_t rows_of(int64_t I) const { return std::min<int64_t>(T_, p_.m - I * T_); }
  int64_t columns_of(int64_t J) const { return std::min<int64_t>(T_, p_.n - J * T_); }
  bool restarts(int64_t I, int64_t J, int64_t least) const;
  void work(Region& region, Pass& pass, Strips& strips, int worker);
  void take(Region& region, Pass& pass, Strips& strips, int64_t I, int worker);
  bool enter(const Region& region, const Pass& pass, Strips& strips, Strip& strip, int worker) const;
  void compute(Region& region, Pass& pass, Strips& strips, Strip& strip, bool made, int worker);
  void keep(const Region& region, Pass& pass, int64_t I, int64_t J, int32_t corner);
  void look_for_ends(End& end, const Tile& tile, int64_t I, int64_t J) const;
  void through_tile(Region& region, Path& path);
  void trace(Tile& tile);
  void follow(const Tile& tile, int64_t i0, int64_t j0, Path& path) const;
  Tile make_tile(Region& region, int64_t I, int64_t J, int32_t corner) const;

  const Problem& p_;
  const Settings& s_;
  int T_;
  int64_t NI_, NJ_;
  int lanes_;  // 0: 16 bits, 1: 32 bits
  std::vector<Workspace> workspaces_;
  std::unique_ptr<uint8_t[]> directions_;  // of a tile
  int64_t cells_ = 0;
};

}  // namespace swsearch
