// scan_kernel: the recurrence with a subject in each lane; read once for each instruction set.
//
// Work:    lane = subject; a block's 64 subjects are computed in groups of one vector. kColumns columns at a time, all
//          rows of a strip one after the other: F and H of the row above stay in registers, E and H of the column
//          before are read and written once every kColumns cells.
// Scores:  by letter, where the matrix has them: of kColumns columns with every letter of the strip, looked up beforehand
//          by byte permutes; a cell then adds from memory. By row, where a query has its own: the columns' codes stay in
//          registers and are looked up in the row cell by cell, which takes one permute with VBMI, two with AVX-512BW,
//          and two and a union with AVX2 and SSE4.1. fill_leaning takes it back in part.
// Gaps:    E opens from H before E itself goes into it, so that it does not wait for it: a gap right after one in the
//          other sequence costs the same in the other order, and H is the same. The chain from column to column is two
//          instructions. Where costs differ by row, F opens from the whole H.
// Values:  in local mode lanes of 8 and 16 bits count from `zero`, which is as far above the lane's lowest value as a
//          gap's first two residues cost: below it only one sum saturates, and all else is plain arithmetic, which
//          x86 processors do twice as often per cycle.
// Cell:    1 saturated sum, 3 differences, 6 maxima (5 where the mode has no zero and no best cell).
// Limits:  a local score that reaches the lane's highest value is flagged as saturated.
//
// No include here: read inside a namespace and under a target, after vector.hpp and an instruction set's own header.

// The scores of a row, to be looked up by the codes of a vector's lanes: 16 at a time, which are then made wider. For
// lanes of 8 bits, and where an instruction set can do more, its header has its own.
template <class T>
class Letters {
 public:
  void load(const uint8_t* codes) {
    uint8_t some[16] = {};
    __builtin_memcpy(some, codes, kLanes);
    codes_ = ShortLetters(some);
  }

 private:
  static constexpr int kLanes = Vector<T, kVectorBytes>::kLanes;
  static_assert(kLanes <= 16);
  friend class RowScores<T>;
  ShortLetters codes_;
};

template <class T>
class RowScores {
 public:
  void load(const int8_t* row) { row_ = ShortRow(row); }
  Vector<T, kVectorBytes> of(const Letters<T>& letters) const {
    typedef int8_t Bytes __attribute__((vector_size(Vector<T, kVectorBytes>::kLanes)));
    const Vector<int8_t, 16> found = row_.of(letters.codes_);
    Bytes bytes;
    __builtin_memcpy(&bytes, &found, sizeof bytes);
    return {__builtin_convertvector(bytes, typename Vector<T, kVectorBytes>::Native)};
  }

 private:
  ShortRow row_;
};

enum class By { kCode, kRow, kRowWithCosts };  // what scores, and perhaps costs, are looked up by
enum class Cells { kLocal, kPlain, kEnds };    // kEnds: with the best H of the columns where a lane's subject ends

// State of one group's rows, and the edges of the rectangle of `rows` x kColumns cells.
template <class T>
struct Rectangle {
  QueryRows at;
  int rows;
  bool last;                // whether no row of the query follows
  const T* table;           // by code: [letter][column][64 lanes]
  const uint8_t* residues;  // by row: [column][64 lanes]
  T* state;                 // [row][H, E][lanes of a vector]
  const T* above;           // [column][H, F][64 lanes]
  const T* corner;          // H before `above`, [64 lanes]
  T* below;                 // as `above`; may be `above` itself
  T* best;                  // [64 lanes]
  const T* ends;            // kEnds: [column][64 lanes], the highest value where the lane ends there, else the lowest
  T first, extend, zero, highest;
};

template <class T, Cells kCells, By kBy>
__attribute__((noinline)) void fill(const Rectangle<T>& at) {
  typedef Vector<T, kVectorBytes> V;
  constexpr int kLanes = V::kLanes;
  const V first = V::all(at.first), extend = V::all(at.extend), zero = V::all(at.zero);
  // copies, because what is stored below might be `at` for all that the compiler knows; and all loops over columns are
  // unrolled, without which F and up stand in memory
  const uint8_t* const codes = at.at.codes;
  const int8_t* const row_scores = at.at.scores;
  const RowCosts* const row_costs = at.at.costs;
  const T* const table = at.table;
  const T* const ends = at.ends;
  const int rows = at.rows;
  V F[kColumns], up[kColumns];
  SWSEARCH_UNROLL
  for (int k = 0; k < kColumns; ++k) {
    up[k] = V::load(at.above + 2 * k * kBlockLanes);
    F[k] = V::load(at.above + (2 * k + 1) * kBlockLanes);
  }
  Letters<T> letters[kBy == By::kCode ? 1 : kColumns];
  if (kBy != By::kCode) {
    SWSEARCH_UNROLL
    for (int k = 0; k < kColumns; ++k) letters[k].load(at.residues + k * kBlockLanes);
  }
  const int last_costs = at.last ? rows - 1 : rows;
  V corner = V::load(at.corner), best = V::load(at.best);
  T* state = at.state;
  for (int i = 0; i < rows; ++i, state += 2 * kLanes) {
    const T* scores = nullptr;
    RowScores<T> row;
    if (kBy == By::kCode) {
      scores = table + static_cast<size_t>(codes[i]) * (kColumns * kBlockLanes);
    } else {
      row.load(row_scores + static_cast<size_t>(i) * kCodes);
    }
    V insertion_first = first, insertion_extend = extend, deletion_first = first, deletion_extend = extend;
    if (kBy == By::kRowWithCosts) {
      const RowCosts& own = row_costs[i];
      const RowCosts& next = row_costs[i < last_costs ? i + 1 : i];  // F goes on to it
      insertion_first = V::all(static_cast<T>(own.insertion_first));
      insertion_extend = V::all(static_cast<T>(own.insertion_extend));
      deletion_first = V::all(static_cast<T>(next.deletion_first));
      deletion_extend = V::all(static_cast<T>(next.deletion_extend));
    }
    V diagonal = corner, E = V::load(state + kLanes);
    corner = V::load(state);
    SWSEARCH_UNROLL
    for (int k = 0; k < kColumns; ++k) {
      V H;
      if constexpr (kBy == By::kCode) {
        H = saturated_sum(diagonal, V::load(scores + k * kBlockLanes));
      } else {
        H = saturated_sum(diagonal, row.of(letters[k]));
      }
      diagonal = up[k];
      H = max(H, kCells == Cells::kLocal ? max(F[k], zero) : F[k]);
      const V opened = sub(H, insertion_first);
      H = max(H, E);
      if (kCells == Cells::kLocal) best = max(best, H);
      if (kCells == Cells::kEnds) best = max(best, min(H, V::load(ends + k * kBlockLanes)));
      E = max(sub(E, insertion_extend), opened);
      F[k] = max(sub(F[k], deletion_extend), kBy == By::kRowWithCosts ? sub(H, deletion_first) : opened);
      up[k] = H;
    }
    up[kColumns - 1].store(state);
    E.store(state + kLanes);
  }
  best.store(at.best);
  SWSEARCH_UNROLL
  for (int k = 0; k < kColumns; ++k) {
    up[k].store(at.below + 2 * k * kBlockLanes);
    F[k].store(at.below + (2 * k + 1) * kBlockLanes);
  }
}

// What fill_leaning needs of a cell: H without what E brings, and then the whole H and what goes on from it.
template <class V>
inline V enter(V diagonal, V score, V F, V zero) {
  return max(max(saturated_sum(diagonal, score), F), zero);
}
template <class V>
inline V leave(V H, V& E, V& F, V& best, V open, V extend) {
  const V opened = sub(H, open), whole = max(H, E);
  E = max(E, opened);
  F = sub(max(F, opened), extend);
  best = max(best, H);
  return whole;
}

// The same in local mode for rows with scores of their own whose columns lean (scan.hpp): 2 differences a cell and 2 a
// row. E is kept before its next extension, so that both E and F open a gap by one difference. A row is looked up while
// E goes along the row above it, which processors overlap better than one after the other. A score close below the
// lane's highest value may be flagged as saturated, too.
template <class T>
__attribute__((noinline)) void fill_leaning(const Rectangle<T>& at) {
  typedef Vector<T, kVectorBytes> V;
  constexpr int kLanes = V::kLanes;
  const V extend = V::all(at.extend), open = V::all(static_cast<T>(at.first - at.extend));
  const V fall = V::all(static_cast<T>(kColumns * at.extend));
  Letters<T> letters[kColumns];
  V F[kColumns], H[kColumns], by[kColumns], zero[kColumns], best[kColumns];
  const int8_t* scores = at.at.scores;
  RowScores<T> top;
  top.load(scores);
  V diagonal = sub(V::load(at.corner), extend);
  SWSEARCH_UNROLL
  for (int k = 0; k < kColumns; ++k) {
    by[k] = V::all(static_cast<T>(k * at.extend));
    best[k] = zero[k] = add(V::all(at.zero), by[k]);
    letters[k].load(at.residues + k * kBlockLanes);
    F[k] = add(V::load(at.above + (2 * k + 1) * kBlockLanes), by[k]);
    H[k] = enter(diagonal, top.of(letters[k]), F[k], zero[k]);
    diagonal = add(V::load(at.above + 2 * k * kBlockLanes), by[k]);
  }
  T* state = at.state;
  for (int left = at.rows - 1; left > 0; --left, state += 2 * kLanes) {
    scores += kCodes;
    RowScores<T> row;
    row.load(scores);
    V E = V::load(state + kLanes), diagonal = V::load(state);
    SWSEARCH_UNROLL
    for (int k = 0; k < kColumns; ++k) {
      const V whole = leave(H[k], E, F[k], best[k], open, extend);
      H[k] = enter(diagonal, row.of(letters[k]), F[k], zero[k]);
      diagonal = whole;
    }
    sub(diagonal, fall).store(state);
    sub(E, fall).store(state + kLanes);
  }
  V E = V::load(state + kLanes), highest = V::load(at.best);
  SWSEARCH_UNROLL
  for (int k = 0; k < kColumns; ++k) {
    H[k] = leave(H[k], E, F[k], best[k], open, extend);
    const V own = sub(best[k], by[k]);
    highest = max(highest, V{best[k].v == V::all(at.highest).v ? best[k].v : own.v});
  }
  sub(H[kColumns - 1], fall).store(state);
  sub(E, fall).store(state + kLanes);
  highest.store(at.best);
  if (at.last) return;
  SWSEARCH_UNROLL
  for (int k = 0; k < kColumns; ++k) {
    sub(H[k], by[k]).store(at.below + 2 * k * kBlockLanes);
    sub(F[k], by[k]).store(at.below + (2 * k + 1) * kBlockLanes);
  }
}

template <class T, Cells kCells>
inline void fill(const Rectangle<T>& at) {
  if (at.at.costs) {
    fill<T, kCells, By::kRowWithCosts>(at);
  } else if (at.at.scores) {
    fill<T, kCells, By::kRow>(at);  // in local mode of those that do not lean
  } else {
    fill<T, kCells, By::kCode>(at);
  }
}

// Look up the scores of kColumns columns with every letter of a strip.
template <class T>
inline void make_table(const Costs& costs, const Strip& strip, const uint8_t* residues, T* table) {
  for (int k = 0; k < kColumns; ++k) {
    const Column column(residues + k * kBlockLanes);
    for (int n = 0; n < strip.n_letters; ++n) {
      const int letter = strip.letters[n];
      T* const out = table + (letter * kColumns + k) * kBlockLanes;
      if constexpr (sizeof(T) == 1) {
        column.look_up(costs.scores + letter * kCodes, out);
      } else {
        alignas(64) int8_t bytes[kBlockLanes];
        column.look_up(costs.scores + letter * kCodes, bytes);
        for (int lane = 0; lane < kBlockLanes; ++lane) out[lane] = bytes[lane];
      }
    }
  }
}

template <class T>
struct Values {
  int32_t zero, lowest, highest;
  explicit Values(const Costs& costs)
      : zero(0), lowest(sizeof(T) == 1 ? INT8_MIN : sizeof(T) == 2 ? INT16_MIN : kNever),
        highest(sizeof(T) == 1 ? INT8_MAX : sizeof(T) == 2 ? INT16_MAX : INT32_MAX) {
    if ((costs.mode == Mode::kLocal || costs.mode == Mode::kShifted) && sizeof(T) < 4) {
      const int32_t gap = (costs.first > costs.most_first ? costs.first : costs.most_first) +
                          (costs.extend > costs.most_extend ? costs.extend : costs.most_extend);
      zero = lowest + (gap > costs.shift ? gap : costs.shift);
    }
  }
};

// H of the cell above (or before) the k-th residue's, for k = 0 the corner's.
inline int32_t edge(const Costs& costs, int32_t zero, int64_t k) {
  if (costs.mode != Mode::kGlobal || k == 0) return zero;
  return static_cast<int32_t>(-(costs.first + (k - 1) * costs.extend));
}

// H of the cell before a query's row, and what a gap costs that begins below it or after it.
class LeftEdge {
 public:
  // For the rows of a piece.
  LeftEdge(const Costs& costs, int32_t zero, const Piece& piece) : costs_(costs), zero_(zero), piece_(piece) {
    if (costs.mode != Mode::kGlobal || !piece.at.costs) return;
    for (int64_t row = -piece.rows_before; row < 0; ++row) pay(row);
  }
  // Go to the next row; from above the first.
  int32_t next() {
    const int64_t row = row_++;
    if (costs_.mode != Mode::kGlobal || !piece_.at.costs) return edge(costs_, zero_, piece_.rows_before + row + 1);
    pay(row);
    return -paid_;
  }
  // H before the row above the first.
  int32_t corner() const {
    return costs_.mode == Mode::kGlobal && piece_.at.costs ? -paid_ : edge(costs_, zero_, piece_.rows_before);
  }

 private:
  void pay(int64_t row) {
    const RowCosts& own = piece_.at.costs[row];
    paid_ += row + piece_.rows_before == 0 ? own.deletion_first : own.deletion_extend;
  }
  const Costs& costs_;
  const int32_t zero_;
  const Piece& piece_;
  int64_t row_ = 0;
  int32_t paid_ = 0;
};

// Take what global and semi-global mode read off the last row of a query.
template <class T, Mode kMode>
inline void look_at_last_row(const Block& block, int column, const T* below, T* best) {
  for (int lane = 0; lane < block.lanes && block.lengths[lane] > column; ++lane) {
    const int end = block.lengths[lane] - column;
    if (kMode == Mode::kGlobal) {
      if (end <= kColumns) best[lane] = below[2 * (end - 1) * kBlockLanes + lane];
      continue;
    }
    for (int k = 0; k < kColumns && k < end; ++k) {
      const T H = below[2 * k * kBlockLanes + lane];
      best[lane] = best[lane] > H ? best[lane] : H;
    }
  }
}

template <class T, Mode kMode>
void scan_strip(const Costs& costs, const Strip& strip, const Block& block, const ScanMemory& memory,
                const std::atomic<bool>& stop) {
  constexpr int kLanes = Vector<T, kVectorBytes>::kLanes, kEdge = 2 * kColumns * kBlockLanes;
  const Values<T> values(costs);
  const T zero = static_cast<T>(values.zero), first = static_cast<T>(costs.first);
  // the table, then the edge above a query, what is below its last row, a strip's corners and the lanes' ends
  T* const table = static_cast<T*>(memory.table);
  T* const top = table + kCodes * kColumns * kBlockLanes;
  T* const bottom = top + kEdge;
  T* const top_corner = bottom + kEdge;
  T* const corner = top_corner + kBlockLanes;
  T* const next_corner = corner + kBlockLanes;
  T* const ends = next_corner + kBlockLanes;
  const size_t group_rows = static_cast<size_t>(strip.rows) * 2 * kLanes;
  T* const state = static_cast<T*>(memory.state);
  const int groups = (block.lanes + kLanes - 1) / kLanes;
  for (int group = 0; group < groups; ++group) {
    T* row = state + group * group_rows;
    for (int n = 0; n < strip.n_pieces; ++n) {
      const Piece& piece = strip.pieces[n];
      LeftEdge left(costs, values.zero, piece);
      for (int i = 0; i < piece.rows; ++i, row += 2 * kLanes) {
        const T H = static_cast<T>(left.next());
        const T opening = piece.at.costs ? static_cast<T>(piece.at.costs[i].insertion_first) : first;
        const T left_H = static_cast<T>(piece.leans ? H - costs.extend : H), E = static_cast<T>(H - opening);
        for (int lane = 0; lane < kLanes; ++lane) {
          row[lane] = left_H;
          row[kLanes + lane] = E;
        }
      }
    }
  }
  const T outside = static_cast<T>(LeftEdge(costs, values.zero, strip.pieces[0]).corner());
  for (int lane = 0; lane < kBlockLanes; ++lane) corner[lane] = outside;

  for (int column = 0; column < block.lengths[0] && !is_set(stop); column += kColumns) {
    const uint8_t* const residues = block.residues + static_cast<size_t>(column) * kBlockLanes;
    if (!strip.pieces[0].at.scores) make_table(costs, strip, residues, table);
    for (int k = 0; k < kColumns; ++k) {
      const T H = static_cast<T>(edge(costs, values.zero, column + k + 1));
      for (int lane = 0; lane < kBlockLanes; ++lane) {
        top[2 * k * kBlockLanes + lane] = H;
        top[(2 * k + 1) * kBlockLanes + lane] = static_cast<T>(H - first);
      }
    }
    const T before = static_cast<T>(edge(costs, values.zero, column));
    for (int lane = 0; lane < kBlockLanes; ++lane) top_corner[lane] = before;
    const bool some_end = kMode == Mode::kSemiglobal && block.lengths[block.lanes - 1] <= column + kColumns;
    for (int lane = 0; some_end && lane < block.lanes; ++lane) {
      const int end = block.lengths[lane] - column - 1;
      for (int k = 0; k < kColumns; ++k) {
        ends[k * kBlockLanes + lane] = static_cast<T>(k == end ? values.highest : values.lowest);
      }
    }
    int active = 0;
    while (active < groups && block.lengths[active * kLanes] > column) ++active;
    T* rows = state;
    T* best = static_cast<T*>(memory.best);
    T* const passing = static_cast<T*>(memory.boundary) + static_cast<size_t>(column) * 2 * kBlockLanes;
    for (int n = 0; n < strip.n_pieces; ++n) {
      const Piece& piece = strip.pieces[n];
      if (piece.first && piece.at.costs) {  // F above the first row has what that row costs
        const T opening = static_cast<T>(piece.at.costs[0].deletion_first);
        for (int k = 0; k < kColumns; ++k) {
          for (int lane = 0; lane < kBlockLanes; ++lane) {
            top[(2 * k + 1) * kBlockLanes + lane] = static_cast<T>(top[2 * k * kBlockLanes + lane] - opening);
          }
        }
      }
      const T* const above = piece.first ? top : passing;
      T* const below = piece.last ? bottom : passing;
      if (!piece.first) {
        for (int lane = 0; lane < kBlockLanes; ++lane) {
          next_corner[lane] = above[2 * (kColumns - 1) * kBlockLanes + lane];
        }
      }
      for (int group = 0; group < active; ++group) {
        const int lane = group * kLanes;
        const Rectangle<T> at = {piece.at, piece.rows, piece.last, table + lane, residues + lane,
                                 rows + group * group_rows, above + lane,
                                 (piece.first ? top_corner : corner) + lane, below + lane, best + lane, ends + lane,
                                 first, static_cast<T>(costs.extend), zero, static_cast<T>(values.highest)};
        if (kMode == Mode::kLocal && piece.leans) {
          fill_leaning(at);
        } else if (kMode == Mode::kLocal) {
          fill<T, Cells::kLocal>(at);
        } else if (some_end) {
          fill<T, Cells::kEnds>(at);
        } else {
          fill<T, Cells::kPlain>(at);
        }
      }
      if (!piece.first) {
        for (int lane = 0; lane < kBlockLanes; ++lane) corner[lane] = next_corner[lane];
      }
      if (piece.last && kMode != Mode::kLocal) look_at_last_row<T, kMode>(block, column, below, best);
      rows += static_cast<size_t>(piece.rows) * 2 * kLanes;
      best += kBlockLanes;
    }
  }
}

template <class T, Mode kMode>
void scan(const Costs& costs, const Bundle& bundle, const Block& block, const ScanMemory& memory,
          const std::atomic<bool>& stop) {
  const Values<T> values(costs);
  T* const best = static_cast<T*>(memory.best);
  LaneScore* found = memory.found;
  for (int n = 0; n < bundle.n_strips; ++n) {
    const Strip& strip = bundle.strips[n];
    const int lanes = strip.n_pieces * kBlockLanes;
    if (strip.pieces[0].first) {
      for (int k = 0; k < lanes; ++k) best[k] = static_cast<T>(values.zero);
    }
    scan_strip<T, kMode>(costs, strip, block, memory, stop);
    if (!strip.pieces[strip.n_pieces - 1].last) continue;
    for (int k = 0; k < lanes; ++k) {
      *found++ = {best[k] - values.zero, kMode == Mode::kLocal && best[k] == values.highest};
    }
  }
}
