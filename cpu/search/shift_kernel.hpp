// shift_kernel: the local recurrence with frame shifts, with a subject in each lane; read once for each instruction set.
//
// Rows are the codons that begin at each nucleotide of a strand of DNA, so that a row follows the third one above it, or
// with a shift the second or the fourth: swsearch/translation/frameshift_reference.py states it.
//
// Work:    as in scan_kernel.hpp, which is read before: lane = subject, all rows of a strip for kShiftColumns columns at a
//          time. H of the four rows above and F of three stay in registers for each column. Which register holds which row
//          comes round every 12 rows, the smallest number that 4 and 3 divide, so that the loop is written out for 12 rows
//          and nothing is moved from register to register.
// Cell:    1 saturated sum, 4 differences, 8 maxima: two maxima and a difference more than without shifts.
// Values:  count from `zero` as in scan_kernel.hpp, which is as far above the lane's lowest value as a shift costs, too.
// Limits:  a local score that reaches the lane's highest value is flagged as saturated.
//
// No include here: read inside a namespace and under a target, after scan_kernel.hpp.

constexpr int kShiftColumns = kColumns / 2;  // 7 registers for each: what 16 or 32 hold, or nearly
static_assert(kColumns % kShiftColumns == 0);

// What is passed from strip to strip of a column: H of the last four rows, and F that the next three take.
constexpr int kHeldH = 4, kHeldF = 3, kHeld = kHeldH + kHeldF;
static_assert(kHeld == kShiftBoundary && kShiftRows % kHeldH == 0 && kShiftRows % kHeldF == 0);

// State of one group's rows, and the edges of the rectangle of `rows` x kShiftColumns cells.
template <class T>
struct ShiftRectangle {
  const uint8_t* codes;
  int rows;          // a multiple of kShiftRows, unless it is the last of the query
  bool first, last;  // of the query's pieces
  const T* table;    // [letter][kColumns columns][64 lanes], from the first column on
  T* state;          // [row][H, E][lanes of a vector]
  T* passing;        // [column][kHeld][64 lanes]: from the piece above, and to the one below
  const T* corner;   // [kHeldH][64 lanes]: H of the column before `passing`, from the piece above
  T* best;           // [64 lanes]
  T open, extend, shift, zero;  // `open` with the first extension
};

// What stays in registers: `up` of the column before each.
template <class T>
struct ShiftHeld {
  typedef Vector<T, kVectorBytes> V;
  V up[kShiftColumns][kHeldH], F[kShiftColumns][kHeldF], best, open, extend, shift, zero;
};

// One row; kRow is its place among kShiftRows.
template <int kRow, class T>
inline __attribute__((always_inline)) void shift_row(ShiftHeld<T>& held, const T* scores, T* state) {
  typedef Vector<T, kVectorBytes> V;
  constexpr int kLanes = V::kLanes, kThird = kRow % kHeldF;
  constexpr int kTwo = (kRow + 2) % kHeldH, kThree = (kRow + 1) % kHeldH, kFour = kRow % kHeldH;  // rows above
  V left = V::load(state), E = V::load(state + kLanes);
  SWSEARCH_UNROLL
  for (int k = 0; k < kShiftColumns; ++k) {
    V& F = held.F[k][kThird];
    V* const up = held.up[k];
    const V shifted = sub(max(up[kTwo], up[kFour]), held.shift);
    V H = saturated_sum(max(up[kThree], shifted), V::load(scores + k * kBlockLanes));
    H = max(H, max(F, held.zero));
    // gaps open before E goes into H, as in scan_kernel.hpp
    const V opened = sub(H, held.open);
    H = max(H, E);
    held.best = max(held.best, H);
    E = max(sub(E, held.extend), opened);
    F = max(sub(F, held.extend), opened);
    up[kFour] = left;
    left = H;
  }
  left.store(state);
  E.store(state + kLanes);
}

template <class T>
__attribute__((noinline)) void fill_shifted(const ShiftRectangle<T>& at) {
  typedef Vector<T, kVectorBytes> V;
  constexpr int kLanes = V::kLanes;
  ShiftHeld<T> held;
  held.open = V::all(at.open);
  held.extend = V::all(at.extend);
  held.shift = V::all(at.shift);
  held.zero = V::all(at.zero);
  held.best = V::load(at.best);
  SWSEARCH_UNROLL
  for (int k = 0; k < kShiftColumns; ++k) {
    const T* const H = k == 0 ? at.corner : at.passing + (k - 1) * kHeld * kBlockLanes;
    const T* const F = at.passing + (k * kHeld + kHeldH) * kBlockLanes;
    SWSEARCH_UNROLL
    for (int n = 0; n < kHeldH; ++n) held.up[k][n] = at.first ? held.zero : V::load(H + n * kBlockLanes);
    SWSEARCH_UNROLL
    for (int n = 0; n < kHeldF; ++n) {
      held.F[k][n] = at.first ? sub(held.zero, held.open) : V::load(F + n * kBlockLanes);
    }
  }
  const uint8_t* codes = at.codes;
  const T* const table = at.table;
  T* state = at.state;
  const auto scores = [table](uint8_t code) {
    return table + static_cast<size_t>(code) * (kColumns * kBlockLanes);
  };
  int left = at.rows;
#define SWSEARCH_SHIFT_ROW(row) shift_row<row>(held, scores(codes[row]), state + row * 2 * kLanes)
  for (; left >= kShiftRows; left -= kShiftRows, codes += kShiftRows, state += kShiftRows * 2 * kLanes) {
    SWSEARCH_SHIFT_ROW(0);
    SWSEARCH_SHIFT_ROW(1);
    SWSEARCH_SHIFT_ROW(2);
    SWSEARCH_SHIFT_ROW(3);
    SWSEARCH_SHIFT_ROW(4);
    SWSEARCH_SHIFT_ROW(5);
    SWSEARCH_SHIFT_ROW(6);
    SWSEARCH_SHIFT_ROW(7);
    SWSEARCH_SHIFT_ROW(8);
    SWSEARCH_SHIFT_ROW(9);
    SWSEARCH_SHIFT_ROW(10);
    SWSEARCH_SHIFT_ROW(11);
  }
  // the last rows of a query, after which nothing is passed on
  if (left > 0) SWSEARCH_SHIFT_ROW(0);
  if (left > 1) SWSEARCH_SHIFT_ROW(1);
  if (left > 2) SWSEARCH_SHIFT_ROW(2);
  if (left > 3) SWSEARCH_SHIFT_ROW(3);
  if (left > 4) SWSEARCH_SHIFT_ROW(4);
  if (left > 5) SWSEARCH_SHIFT_ROW(5);
  if (left > 6) SWSEARCH_SHIFT_ROW(6);
  if (left > 7) SWSEARCH_SHIFT_ROW(7);
  if (left > 8) SWSEARCH_SHIFT_ROW(8);
  if (left > 9) SWSEARCH_SHIFT_ROW(9);
  if (left > 10) SWSEARCH_SHIFT_ROW(10);
#undef SWSEARCH_SHIFT_ROW
  held.best.store(at.best);
  if (at.last) return;
  SWSEARCH_UNROLL
  for (int k = 0; k < kShiftColumns; ++k) {
    T* const out = at.passing + k * kHeld * kBlockLanes;
    SWSEARCH_UNROLL
    for (int n = 0; n < kHeldH; ++n) {
      const V H = k + 1 < kShiftColumns ? held.up[(k + 1) % kShiftColumns][n]
                                        : V::load(state + (n - kHeldH) * 2 * kLanes);  // of the last column
      H.store(out + n * kBlockLanes);
    }
    SWSEARCH_UNROLL
    for (int n = 0; n < kHeldF; ++n) held.F[k][n].store(out + (kHeldH + n) * kBlockLanes);
  }
}

template <class T>
void scan_shifted_strip(const Costs& costs, const Strip& strip, const Block& block, const ScanMemory& memory,
                        const std::atomic<bool>& stop) {
  constexpr int kLanes = Vector<T, kVectorBytes>::kLanes, kCorner = kHeldH * kBlockLanes;
  static_assert(2 * kHeldH <= 4 * kColumns, "both corners have to fit what scan_table_lanes has after the table");
  const Values<T> values(costs);
  const T zero = static_cast<T>(values.zero), open = static_cast<T>(costs.first);
  T* const table = static_cast<T*>(memory.table);
  T* const corner = table + kCodes * kColumns * kBlockLanes;
  T* const next_corner = corner + kCorner;
  const size_t group_rows = static_cast<size_t>(strip.rows) * 2 * kLanes;
  T* const state = static_cast<T*>(memory.state);
  const int groups = (block.lanes + kLanes - 1) / kLanes;
  for (size_t row = 0; row < static_cast<size_t>(groups) * static_cast<size_t>(strip.rows); ++row) {
    for (int lane = 0; lane < kLanes; ++lane) {
      state[row * 2 * kLanes + lane] = zero;
      state[(row * 2 + 1) * kLanes + lane] = static_cast<T>(zero - open);
    }
  }
  for (int k = 0; k < kCorner; ++k) corner[k] = zero;

  for (int column = 0; column < block.lengths[0] && !is_set(stop); column += kShiftColumns) {
    const int within = column % kColumns;  // of those that the table has
    if (within == 0) {
      make_table(costs, strip, block.residues + static_cast<size_t>(column) * kBlockLanes, table);
    }
    int active = 0;
    while (active < groups && block.lengths[active * kLanes] > column) ++active;
    T* rows = state;
    T* best = static_cast<T*>(memory.best);
    T* const passing = static_cast<T*>(memory.boundary) + static_cast<size_t>(column) * kHeld * kBlockLanes;
    for (int n = 0; n < strip.n_pieces; ++n) {
      const Piece& piece = strip.pieces[n];
      if (!piece.first) {  // what is passed on is overwritten
        const T* const above = passing + (kShiftColumns - 1) * kHeld * kBlockLanes;
        for (int k = 0; k < kCorner; ++k) next_corner[k] = above[k];
      }
      for (int group = 0; group < active; ++group) {
        const int lane = group * kLanes;
        fill_shifted(ShiftRectangle<T>{piece.at.codes, piece.rows, piece.first, piece.last,
                                       table + within * kBlockLanes + lane, rows + group * group_rows, passing + lane,
                                       corner + lane, best + lane, open, static_cast<T>(costs.extend),
                                       static_cast<T>(costs.shift), zero});
      }
      if (!piece.first) {
        for (int k = 0; k < kCorner; ++k) corner[k] = next_corner[k];
      }
      rows += static_cast<size_t>(piece.rows) * 2 * kLanes;
      best += kBlockLanes;
    }
  }
}

template <class T>
void scan_shifted(const Costs& costs, const Bundle& bundle, const Block& block, const ScanMemory& memory,
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
    scan_shifted_strip<T>(costs, strip, block, memory, stop);
    if (!strip.pieces[strip.n_pieces - 1].last) continue;
    for (int k = 0; k < lanes; ++k) *found++ = {best[k] - values.zero, best[k] == values.highest};
  }
}
