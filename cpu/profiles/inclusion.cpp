// inclusion: ends that score little, and windows of low complexity or like a coiled coil.
#include "profiles/inclusion.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace swsearch {

namespace {

// ends

constexpr int64_t kFine = 1000;  // FINE of swsearch/pipeline/inclusion.py
constexpr int64_t kFarScore = int64_t{1} << 32;  // thousandths of a unit, beyond what any column scores

// Call each(score) for every column of an alignment, in thousandths of a unit less the minimum.
template <class Each>
void each_column(const Trim& trim, int64_t k, Each&& each) {
  const int64_t least = std::clamp(trim.min_score, -kFarScore, kFarScore);
  walk(trim.runs, k, [&](uint8_t operation, int64_t n, int64_t a, int64_t b) {
    if (operation == 'M') {
      for (int64_t c = 0; c < n; ++c) each(kFine * trim.scores[(a + c) * kCodes + trim.subjects[b + c]] - least);
      return;
    }
    for (int64_t c = 0; c < n; ++c) {
      // an insertion stands after the row before it
      const int16_t* const costs =
          operation == 'I' ? trim.costs + 4 * (a + c) : trim.costs + 4 * std::max<int64_t>(a - 1, 0) + 2;
      each(-kFine * (costs[1] + (c == 0 ? costs[0] : 0)) - least);
    }
  });
}

// A part of the columns, half-open.
struct Part {
  int64_t begin = 0, end = 0;
};

Part best_part(const Trim& trim, int64_t k) {
  Part part;
  int64_t total = 0, lowest = 0, lowest_at = 0, best = 0, column = 0;
  each_column(trim, k, [&](int64_t score) {
    if (total <= lowest) {
      lowest = total;
      lowest_at = column;
    }
    total += score;
    ++column;
    if (total - lowest > best) {
      best = total - lowest;
      part = {lowest_at, column};
    }
  });
  return part;
}

}  // namespace

void trim_ends(const Trim& trim, const Trimmed& trimmed) {
  const int64_t count = trim.runs.count;
  int64_t last = 0;
  trimmed.offsets[0] = 0;
  for (int64_t k = 0; k < count; ++k) {
    const Part part = best_part(trim, k);
    int64_t query_start = trim.runs.query_starts[k], subject_start = trim.runs.subject_starts[k];
    int64_t column = 0, pairs = 0, query_end = query_start, subject_end = subject_start;
    walk(trim.runs, k, [&](uint8_t operation, int64_t n, int64_t a, int64_t b) {
      const int64_t begin = std::max(part.begin - column, int64_t{0}), end = std::min(part.end - column, n);
      if (begin < end) {
        const int64_t in_query = operation != 'D', in_subject = operation != 'I';
        if (column <= part.begin) {
          query_start = a + in_query * begin;
          subject_start = b + in_subject * begin;
        }
        query_end = a + in_query * end;
        subject_end = b + in_subject * end;
        pairs += operation == 'M' ? end - begin : 0;
        trimmed.lengths[last] = end - begin;
        trimmed.operations[last++] = operation;
      }
      column += n;
    });
    trimmed.offsets[k + 1] = last;
    const int64_t columns = part.end - part.begin;
    const std::array<int64_t, kTrimmed> numbers{query_start, query_end, subject_start, subject_end, columns,
                                                columns - pairs};
    for (size_t which = 0; which < numbers.size(); ++which) {
      trimmed.numbers[static_cast<int64_t>(which) * count + k] = numbers[which];
    }
  }
}

namespace {

// windows

constexpr int64_t kEntropyWindow = 12;  // residues: SEG's window (Wootton and Federhen, Comput. Chem. 17:149, 1993)
constexpr double kMinEntropy = 2.2;     // bits: its lower cutoff

// A window whose letters occur k times each has the entropy log2(12) - sum(k log2 k) / 12. The sums are whole numbers
// here: no window comes closer to the cutoff than 0.01 bits, so that neither rounding nor order matters.
struct EntropyTable {
  EntropyTable() {
    const auto term = [](double k) { return k > 0 ? k * std::log2(k) : 0.0; };
    const auto whole = [](double bits) { return static_cast<int32_t>(std::lround(65536 * bits)); };
    for (size_t k = 0; k < rises.size(); ++k) {
      rises[k] = whole(term(static_cast<double>(k) + 1)) - whole(term(static_cast<double>(k)));
    }
    limit = whole(kEntropyWindow * (std::log2(double{kEntropyWindow}) - kMinEntropy));
  }
  std::array<int32_t, kEntropyWindow> rises;  // of the sum, by the letter's number so far
  int32_t limit;                              // of the sum; a window above it is of low complexity
};

// Call each(is_low) for every window of n residues.
template <class Each>
void low_complexity(const uint8_t* codes, int64_t n, Each&& each) {
  static const EntropyTable table;
  std::array<uint8_t, 256> numbers{};
  int32_t sum = 0;
  for (int64_t k = 0; k < n; ++k) {
    sum += table.rises[numbers[codes[k]]++];
    if (k + 1 < kEntropyWindow) continue;
    each(sum > table.limit);
    sum -= table.rises[--numbers[codes[k + 1 - kEntropyWindow]]];
  }
}

constexpr int64_t kHeptad = 7;
constexpr int64_t kHeptadsWindow = 4 * kHeptad;  // residues, as in COILS (Lupas et al., Science 252:1162, 1991)

// At the positions a and d of a window's heptads, 8 residues, at least so many are core (McLachlan and Stewart, J. Mol.
// Biol. 98:293, 1975). Of the other 20 at most so many are, and at least so many charged. A choice: most windows of
// tropomyosin pass, and none of myoglobin.
constexpr int kCoreInside = 6, kCoreOutside = 5, kChargedOutside = 10;

// Numbers of residues of one kind in a window, by their place modulo 7.
struct Heptads {
  std::array<int, kHeptad> by_place{};
  int all = 0;
  void add(int64_t place, int number) {
    by_place[static_cast<size_t>(place)] += number;
    all += number;
  }
  int inside(size_t a) const { return by_place[a] + by_place[(a + 3) % kHeptad]; }
};

bool is_coiled(const Heptads& core, const Heptads& charged) {
  if (core.all < kCoreInside || charged.all < kChargedOutside) return false;
  for (size_t a = 0; a < kHeptad; ++a) {  // any of the seven registers
    const int inside = core.inside(a);
    if (inside >= kCoreInside && core.all - inside <= kCoreOutside &&
        charged.all - charged.inside(a) >= kChargedOutside) {
      return true;
    }
  }
  return false;
}

// Call each(is_coiled) for every window of n residues.
template <class Each>
void coiled_coil(const uint8_t* codes, int64_t n, const uint8_t* kinds, Each&& each) {
  Heptads core, charged;
  const auto add = [&](int64_t k, int number) {
    const uint8_t kind = kinds[codes[k]];
    core.add(k % kHeptad, kind & kCore ? number : 0);
    charged.add(k % kHeptad, kind & kCharged ? number : 0);
  };
  for (int64_t k = 0; k < n; ++k) {
    add(k, 1);
    if (k + 1 < kHeptadsWindow) continue;
    each(is_coiled(core, charged));
    add(k + 1 - kHeptadsWindow, -1);
  }
}

// A kind of windows, and the largest percentage of them; scan(codes, n, each) calls each(is_of_the_kind).
template <class Scan>
class Windows {
 public:
  Windows(const Selection& s, int64_t window, double most, Scan scan) : window_(window), most_(most), scan_(scan) {
    if (is_off()) return;
    before_.push_back(0);
    scan_(s.query, s.query_length, [this](bool is_one) { before_.push_back(before_.back() + is_one); });
  }

  // Whether so many windows, or fewer, are of the kind in a part of the query, and in residues of a subject.
  bool passes(int64_t begin, int64_t end, const uint8_t* residues, int64_t n) const {
    if (is_off()) return true;
    const int64_t in_query = end - begin - window_ + 1;
    if (is_too_much(in_query > 0 ? before(begin + in_query) - before(begin) : 0, in_query)) return false;
    int64_t of_kind = 0;
    scan_(residues, n, [&](bool is_one) { of_kind += is_one; });
    return !is_too_much(of_kind, n - window_ + 1);
  }

 private:
  bool is_off() const { return std::isinf(most_) && most_ > 0; }
  int64_t before(int64_t place) const { return before_[static_cast<size_t>(place)]; }
  bool is_too_much(int64_t of_kind, int64_t all) const {
    return !(100.0 * static_cast<double>(of_kind) / static_cast<double>(std::max(all, int64_t{1})) <= most_);
  }
  int64_t window_;
  double most_;
  Scan scan_;
  std::vector<int64_t> before_;  // windows of the kind before each place of the query
};

}  // namespace

void select_hits(const Selection& s, uint8_t* flags) {
  const Windows low(s, kEntropyWindow, s.most_low_complexity,
                    [](const uint8_t* codes, int64_t n, auto&& each) { low_complexity(codes, n, each); });
  const Windows coiled(s, kHeptadsWindow, s.most_coiled_coil, [&s](const uint8_t* codes, int64_t n, auto&& each) {
    coiled_coil(codes, n, s.kinds, each);
  });
  for (int64_t k = 0; k < s.runs.count; ++k) {
    const int64_t begin = s.runs.query_starts[k], first = s.runs.subject_starts[k];
    int64_t pairs = 0, end = begin, last = first;
    walk(s.runs, k, [&](uint8_t operation, int64_t n, int64_t a, int64_t b) {
      pairs += operation == 'M' ? n : 0;
      end = operation == 'D' ? a : a + n;
      last = operation == 'I' ? b : b + n;
    });
    flags[k] = pairs >= s.min_pairs && static_cast<double>(100 * pairs) >= s.min_percent &&
               low.passes(begin, end, s.subjects + first, last - first) &&
               coiled.passes(begin, end, s.subjects + first, last - first);
  }
}

}  // namespace swsearch
