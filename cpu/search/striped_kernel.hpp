// striped_kernel: the recurrence with one subject in all lanes, for subjects that would leave most lanes of
// scan_kernel.hpp idle; read once for each instruction set.
//
// Work:    lane = a run of `segment` query rows, so that vector j holds row j of every run (Farrar, Bioinformatics 23,
//          2007, 156-161). A column is computed from vector 0 on, with F from the row above the run's first taken for
//          lowest; then F is carried on into the next run as long as it changes something.
// Scores:  a profile, each letter's score with every row in that order, looked up by byte permutes; or copied, where
//          rows have scores of their own.
// Values:  as in scan_kernel.hpp.
// Carry:   an F that arrives at a run's row is followed while F > H - open, `open` being what a gap costs apart from
//          its residues: else F - extend <= H - first, which the rows below already know of. In local mode one below
//          zero ends, too, since no H is. H that grew by an F may open a gap in the other sequence.
// Limits:  as in scan_kernel.hpp. Rows after the query's last compute what no row of the query reads.
//
// No include here: read inside a namespace and under a target, after scan_kernel.hpp.

// Lanes moved up by one; `low` comes in.
template <class V>
inline V moved_up(V vector, typename V::Value low) {
  typename V::Value lanes[2 * V::kLanes];
  lanes[V::kLanes - 1] = low;
  vector.store(lanes + V::kLanes);
  return V::load(lanes + V::kLanes - 1);
}

// Whether a lane of `a` is above that of `b`.
template <class V>
inline bool any_above(V a, V b) {
  const auto above = a.v > b.v;
  uint64_t words[sizeof(above) / 8], any = 0;
  __builtin_memcpy(words, &above, sizeof above);
  for (const uint64_t word : words) any |= word;
  return any != 0;
}

// Write each letter's profile, where the subject has it: [letter][segment][lanes]; the rows' codes are in `codes`,
// which is filled up to whole columns of a block.
template <class T>
void make_profile(const Costs& costs, const uint8_t* codes, size_t lanes, const bool* occurs, T* profile) {
  for (int letter = 0; letter < kCodes; ++letter) {
    if (!occurs[letter]) continue;
    int8_t row[kCodes];  // scores of every query code with the letter
    for (int code = 0; code < kCodes; ++code) row[code] = costs.scores[code * kCodes + letter];
    T* const out = profile + static_cast<size_t>(letter) * lanes;
    for (size_t k = 0; k < lanes; k += kBlockLanes) {
      const Column column(codes + k);
      alignas(64) int8_t bytes[kBlockLanes];
      column.look_up(row, bytes);
      for (int lane = 0; lane < kBlockLanes; ++lane) out[k + lane] = bytes[lane];
    }
  }
}

// The same of rows with scores of their own.
template <class T>
void copy_profile(const int8_t* scores, int rows, int segment, size_t lanes, const bool* occurs, T* profile) {
  constexpr int kLanes = Vector<T, kVectorBytes>::kLanes;
  uint8_t letters[kCodes];
  int n_letters = 0;
  for (int letter = 0; letter < kCodes; ++letter) {
    if (occurs[letter]) letters[n_letters++] = static_cast<uint8_t>(letter);
  }
  for (int row = 0; row < segment * kLanes; ++row) {
    T* const out = profile + row % segment * kLanes + row / segment;
    for (int n = 0; n < n_letters; ++n) {
      const int letter = letters[n];
      out[static_cast<size_t>(letter) * lanes] = row < rows ? scores[row * kCodes + letter] : INT8_MIN;
    }
  }
}

template <class T, Mode kMode>
LaneScore stripe(const Costs& costs, const QueryRows& query, int rows, const uint8_t* subject, int columns,
                 const StripedMemory& memory, const std::atomic<bool>& stop) {
  typedef Vector<T, kVectorBytes> V;
  constexpr int kLanes = V::kLanes;
  const Values<T> values(costs);
  const int segment = (rows + kLanes - 1) / kLanes;
  const size_t lanes = memory.lanes;
  for (size_t k = 0; k < lanes && !query.scores; ++k) {
    const int64_t row = static_cast<int64_t>(k % kLanes) * segment + static_cast<int64_t>(k / kLanes);
    memory.codes[k] = row < rows && k / kLanes < static_cast<size_t>(segment) ? query.codes[row] : kCodes - 1;
  }
  bool occurs[kCodes] = {};
  for (int k = 0; k < columns; ++k) occurs[subject[k] % kCodes] = true;
  T* const profile = static_cast<T*>(memory.profile);
  if (query.scores) {
    copy_profile(query.scores, rows, segment, lanes, occurs, profile);
  } else {
    make_profile(costs, memory.codes, lanes, occurs, profile);
  }

  T* const H = static_cast<T*>(memory.state);
  T* const E = H + lanes;
  const T first_cost = static_cast<T>(costs.first);
  for (int j = 0; j < segment; ++j) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const T h = static_cast<T>(edge(costs, values.zero, int64_t{lane} * segment + j + 1));
      H[j * kLanes + lane] = h;
      E[j * kLanes + lane] = static_cast<T>(h - first_cost);
    }
  }
  // no F is lower, or it does not matter; an extension more still fits the lane
  const T never = static_cast<T>(kMode == Mode::kLocal ? values.zero - costs.first : values.lowest + costs.extend);
  const V first = V::all(first_cost), extend = V::all(static_cast<T>(costs.extend));
  const V open = V::all(static_cast<T>(costs.first - costs.extend)), zero = V::all(static_cast<T>(values.zero));
  const V low = V::all(never);
  const int last = (rows - 1) % segment * kLanes + (rows - 1) / segment;  // the query's last row
  V best = zero;
  T best_end = static_cast<T>(values.zero);
  for (int column = 0; column < columns; ++column) {
    if (column % 256 == 0 && is_set(stop)) break;
    const T* const scores = profile + static_cast<size_t>(subject[column] % kCodes) * lanes;
    V diagonal = moved_up(V::load(H + (segment - 1) * kLanes), static_cast<T>(edge(costs, values.zero, column)));
    V F = moved_up(low, static_cast<T>(edge(costs, values.zero, column + 1) - costs.first));
    for (int j = 0; j < segment * kLanes; j += kLanes) {
      V h = saturated_sum(diagonal, V::load(scores + j));
      V e = V::load(E + j);
      diagonal = V::load(H + j);
      h = max(h, e);
      h = max(h, kMode == Mode::kLocal ? max(F, zero) : F);
      if (kMode == Mode::kLocal) best = max(best, h);
      h.store(H + j);
      const V opened = sub(h, first);
      e = max(sub(e, extend), opened);
      e.store(E + j);
      F = max(sub(F, extend), opened);
    }
    for (int run = 1; run < kLanes; ++run) {
      F = moved_up(F, never);
      int j = 0;
      for (; j < segment * kLanes; j += kLanes) {
        V h = V::load(H + j);
        const V known = sub(h, open);
        if (!any_above(F, kMode == Mode::kLocal ? max(known, zero) : known)) break;
        h = max(h, F);
        h.store(H + j);
        max(V::load(E + j), sub(h, first)).store(E + j);
        F = max(sub(F, extend), low);
      }
      if (j < segment * kLanes) break;
    }
    if (kMode == Mode::kSemiglobal) best_end = best_end > H[last] ? best_end : H[last];
  }
  if (kMode == Mode::kGlobal) return {H[last], false};
  if (kMode == Mode::kSemiglobal) {
    for (int64_t row = 0; row < rows; ++row) {
      const T h = H[row % segment * kLanes + row / segment];
      best_end = best_end > h ? best_end : h;
    }
    return {best_end, false};
  }
  T lane_bests[kLanes], highest = static_cast<T>(values.zero);
  best.store(lane_bests);
  for (const T each : lane_bests) highest = highest > each ? highest : each;
  return {highest - values.zero, highest == values.highest};
}
