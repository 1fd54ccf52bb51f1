// kernel: the recurrence over one tile, one diagonal at a time; read once for each instruction set.
//
// Work:    lane = row; the cells of an anti-diagonal do not depend on each other, so that the loop over them is
//          plain C++ that the compiler vectorises for any width.
// Values:  H, E and F of cell (i, j) are kept with extend * (i + j) added, which makes extending a gap free; of H
//          only G = H - open is kept, which is what a gap opens from:
//              E(i, j) = max(E(i, j-1), G(i, j-1))      F(i, j) = max(F(i-1, j), G(i-1, j))
//              H(i, j) = max(G(i-1, j-1) + open + 2 * extend + score(i, j), E(i, j), F(i, j))
// Scores:  a diagonal needs another letter pair in every lane. Rows of a profile are read 16 columns at a time, each
//          row one column left of the row above, and transposed: 0.25 instructions per cell, where a gather takes one.
// Lanes:   whole chunks are computed; those outside the tile hold values that nothing inside reads.
//
// No include here: this file is read inside a namespace and under a target, by isa/<name>.cpp.

typedef int8_t Bytes __attribute__((vector_size(16)));

inline Bytes load_bytes(const int8_t* from) {
  Bytes value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

inline Bytes low_halves(Bytes a, Bytes b) {
  return SWSEARCH_SHUFFLE(Bytes, a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

inline Bytes high_halves(Bytes a, Bytes b) {
  return SWSEARCH_SHUFFLE(Bytes, a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// Transpose 16 x 16 bytes: four rounds of interleaving rows k and k + 8.
inline void transpose(Bytes (&rows)[16]) {
  for (int round = 0; round < 4; ++round) {
    Bytes next[16];
    for (int k = 0; k < 8; ++k) {
      next[2 * k] = low_halves(rows[k], rows[k + 8]);
      next[2 * k + 1] = high_halves(rows[k], rows[k + 8]);
    }
    for (int k = 0; k < 16; ++k) rows[k] = next[k];
  }
}

// The tile's score rows, one for each code in the query, with margins that no alignment would enter.
inline void make_profile(const Tile& tile, const TileMemory& memory) {
  const int padded = rounded(tile.rows);
  const size_t width = static_cast<size_t>(tile.columns) + 2 * kMargin;
  const int8_t* rows_of[kCodes + 1] = {};
  int8_t* next = memory.profile;
  const auto row_of = [&](int code) {
    if (rows_of[code] == nullptr) {
      __builtin_memset(next, -128, width);
      if (code < kCodes) {
        if (tile.by_letter) {
          __builtin_memcpy(next + kMargin, tile.by_letter + code * tile.stride, static_cast<size_t>(tile.columns));
        } else {
          const int8_t* scores = tile.scores + code * kCodes;
          for (int k = 0; k < tile.columns; ++k) next[kMargin + k] = scores[tile.subject[k]];
        }
      }
      rows_of[code] = next + kMargin - 1;  // columns count from 1
      next += width;
    }
    return rows_of[code];
  };
  for (int k = 0; k < padded; ++k) {
    memory.row_profiles[k] = row_of(k < tile.rows ? tile.query[k] : kCodes);
  }
}

// Scores of the diagonals `first` to `first + 15`, for the rows of lanes [begin, end).
inline void skew(const TileMemory& memory, int first, int begin, int end, int stride, int8_t* out) {
  for (int row = begin; row < end; row += 16) {
    Bytes block[16];
    for (int k = 0; k < 16; ++k) {
      block[k] = load_bytes(memory.row_profiles[row + k] + (first - (row + k + 1)));
    }
    transpose(block);
    for (int k = 0; k < 16; ++k) __builtin_memcpy(out + k * stride + row, &block[k], 16);
  }
}

template <class T>
struct Diagonal {
  const T *G1, *G2, *F1;  // G of the last diagonal but one and two, F of the last, each of the row above
  const T* G1_same;       // G of the last diagonal, same row
  T *G, *E, *F;
  const int8_t* scores;
  T *best, *best_at;
  uint8_t* directions;
};

template <class T, bool kLocal, bool kTrace, bool kTurned>
inline void step(const Diagonal<T>& at, int count, T open, T bias, T zero, T now) {
  const T* __restrict G1 = at.G1;
  const T* __restrict G2 = at.G2;
  const T* __restrict F1 = at.F1;
  const T* __restrict G1_same = at.G1_same;
  T* __restrict G = at.G;
  T* __restrict E = at.E;
  T* __restrict F = at.F;
  const int8_t* __restrict scores = at.scores;
  T* __restrict best = at.best;
  T* __restrict best_at = at.best_at;
  uint8_t* __restrict directions = at.directions;
  SWSEARCH_INDEPENDENT
  for (int k = 0; k < count; ++k) {
    const T e = E[k] > G1_same[k] ? E[k] : G1_same[k];
    const T f = F1[k] > G1[k] ? F1[k] : G1[k];
    const T pair = static_cast<T>(G2[k] + static_cast<T>(scores[k] + bias));
    T h = e > f ? e : f;
    h = h > pair ? h : pair;
    if (kLocal) h = h > zero ? h : zero;
    if (kTrace) {
      // ties: a pair before F before E, extending before opening; a local alignment begins where H is 0. Where the
      // tile is turned, E is what leaves residues of the query over, and comes before F
      uint8_t source = kTurned ? (h == e ? kGapE : kGapF) : (h == f ? kGapF : kGapE);
      source = h == pair ? kPair : source;
      if (kLocal) source = h == zero ? kStop : source;
      directions[k] = static_cast<uint8_t>(source | (f == F1[k] ? kExtendsF : 0) | (e == E[k] ? kExtendsE : 0));
    }
    if (kLocal) {
      // both read before they are chosen from: else clang stores on a condition, for which SSE and AVX2 have no vectors
      const T gained = static_cast<T>(h - zero), most = best[k], most_at = best_at[k];
      best_at[k] = gained > most ? now : most_at;
      best[k] = gained > most ? gained : most;
    }
    E[k] = e;
    F[k] = f;
    G[k] = static_cast<T>(h - open);
  }
}

template <class T, bool kLocal, bool kTrace, bool kTurned = false>
void run(Tile& tile, const TileMemory& memory) {
  const int R = tile.rows, C = tile.columns;
  const int padded = rounded(R), lanes = lane_count(R);
  const int32_t open = tile.open, extend = tile.extend;
  const T never = static_cast<T>(tile_range(R, C, tile.max_score, open, extend).never);
  make_profile(tile, memory);
  T* const buffers = static_cast<T*>(memory.lanes);
  for (int k = 0; k < kLaneBuffers * lanes; ++k) buffers[k] = k < 6 * lanes ? never : T{0};
  T* G[3] = {buffers, buffers + lanes, buffers + 2 * lanes};
  T* F[2] = {buffers + 3 * lanes, buffers + 4 * lanes};
  T* E = buffers + 5 * lanes;
  T* best = buffers + 6 * lanes;
  T* best_at = buffers + 7 * lanes;

  int32_t base = tile.corner;
  for (int k = 0; k < C; ++k) base = base > tile.row_H[k] ? base : tile.row_H[k];
  for (int k = 0; k < R; ++k) base = base > tile.column_H[k] ? base : tile.column_H[k];
  if (kLocal && base < 0) base = 0;
  const auto inward = [&](int32_t value, int diagonal) {
    const int64_t relative = int64_t{value} - base;
    return static_cast<T>((relative > never ? relative : never) + extend * diagonal);
  };
  const auto outward = [&](T value, int diagonal) { return static_cast<int32_t>(base + value - extend * diagonal); };
  const auto enter = [&](int diagonal, T* g, T* f) {  // the edges' cells on a diagonal
    if (diagonal <= C) {
      g[kLaneOffset] = static_cast<T>(inward(tile.row_H[diagonal - 1], diagonal) - open);
      f[kLaneOffset] = inward(tile.row_F[diagonal - 1], diagonal);
    }
    if (diagonal <= R) {
      g[kLaneOffset + diagonal] = static_cast<T>(inward(tile.column_H[diagonal - 1], diagonal) - open);
      E[kLaneOffset + diagonal] = inward(tile.column_E[diagonal - 1], diagonal);
    }
  };
  G[2][kLaneOffset] = static_cast<T>(inward(tile.corner, 0) - open);
  enter(1, G[1], F[1]);

  const T bias = static_cast<T>(open + 2 * extend);
  for (int d = 2; d <= R + C; ++d) {
    const int low = d - C > 1 ? d - C : 1, high = d - 1 < R ? d - 1 : R;
    const int begin = (low - 1) / kChunk * kChunk, end = rounded(high);
    const int ahead = (d - 2) % 16;
    if (ahead == 0) skew(memory, d, begin, rounded(high + 15 < R ? high + 15 : R), padded, memory.skewed);
    const int lane = kLaneOffset + 1 + begin;
    const Diagonal<T> at = {G[1] + lane - 1, G[2] + lane - 1, F[1] + lane - 1, G[1] + lane, G[0] + lane,
                            E + lane, F[0] + lane, memory.skewed + ahead * padded + begin,
                            best + lane, best_at + lane,
                            kTrace ? tile.directions + static_cast<size_t>(d - 2) * padded + begin : nullptr};
    step<T, kLocal, kTrace, kTurned>(at, end - begin, static_cast<T>(open), bias, inward(0, d), static_cast<T>(d));
    enter(d, G[0], F[0]);
    if (d > R) {
      tile.row_H[d - R - 1] = outward(static_cast<T>(G[0][kLaneOffset + R] + open), d);
      tile.row_F[d - R - 1] = outward(F[0][kLaneOffset + R], d);
    }
    if (d > C) {
      tile.column_H[d - C - 1] = outward(static_cast<T>(G[0][kLaneOffset + d - C] + open), d);
      tile.column_E[d - C - 1] = outward(E[kLaneOffset + d - C], d);
    }
    T* const spare = G[2];
    G[2] = G[1];
    G[1] = G[0];
    G[0] = spare;
    T* const other = F[1];
    F[1] = F[0];
    F[0] = other;
  }
  if (!kLocal) return;
  tile.best = 0;
  const int32_t zero = static_cast<int32_t>(inward(0, 0));
  for (int row = 1; row <= R; ++row) {
    const T gained = best[kLaneOffset + row];
    const int32_t score = base + zero + gained, column = best_at[kLaneOffset + row] - row;
    if (gained > 0 && (score > tile.best || (score == tile.best && !tile.turned && column < tile.best_column))) {
      tile.best = score;
      tile.best_row = row;
      tile.best_column = column;
    }
  }
}

const PairKernels kPairKernels = {
    {run<int16_t, false, false>, run<int32_t, false, false>},
    {run<int16_t, true, false>, run<int32_t, true, false>},
    {run<int16_t, false, true>, run<int32_t, false, true>},
    {run<int16_t, true, true>, run<int32_t, true, true>},
    {run<int16_t, false, true, true>, run<int32_t, false, true, true>},
    {run<int16_t, true, true, true>, run<int32_t, true, true, true>},
};
