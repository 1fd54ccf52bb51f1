// shifted: rows of the recurrence, of which some are kept, and the way back through those that the alignment passes.
#include "shift/shifted.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "codes.hpp"
#include "pairs/turns.hpp"

namespace swsearch {

namespace {

constexpr int32_t kNone = -(1 << 29);  // minus infinity; REACH_LIMIT of swsearch/engines/cpu/tracing.py leaves room
constexpr int64_t kCellsBetweenQuestions = 1 << 26;
constexpr int kCodon = 3, kAbove = 4;  // rows above that H takes; F takes three
constexpr int kSlots = kAbove + 1, kGapSlots = kCodon + 1;  // with the row that is computed
constexpr int kKept = kAbove + kCodon;                      // rows of numbers that the next row needs

// A direction: where H comes from, and whether the gaps that end here are extended.
enum : uint8_t { kStop, kPair, kTwice, kSkipped, kCodonAlone, kResidueAlone, kSource = 7, kExtendsF = 8, kExtendsE = 16 };

// Rows from checkpoint to checkpoint: as many as make what is kept and what is computed again equally large.
int64_t rows_apart(int64_t n) {
  const double rows = std::sqrt(static_cast<double>(n) * kKept * sizeof(int32_t));
  return std::max<int64_t>(static_cast<int64_t>(rows), kSlots);
}

// Row i is of the codon that begins at nucleotide i; entry j belongs to the first j residues.
class Rows {
 public:
  Rows(const ShiftedPair& pair, const ShiftCosts& costs)
      : pair_(pair), costs_(costs), size_(static_cast<size_t>(pair.m) + 1), scores_(kCodes * size_),
        h_(kSlots * size_), f_(kGapSlots * size_, kNone), e_(size_, kNone) {
    for (size_t letter = 0; letter < kCodes; ++letter) {
      for (size_t j = 1; j < size_; ++j) scores_[letter * size_ + j] = costs.scores[letter * kCodes + pair.subject[j - 1]];
    }
  }

  int32_t* h(int64_t i) { return h_.data() + slot(i, kSlots) * size_; }
  int32_t* f(int64_t i) { return f_.data() + slot(i, kGapSlots) * size_; }

  // What the rows from i on need of those above.
  void keep(int64_t i, int32_t* to) {
    for (int k = 1; k <= kAbove; ++k, to += size_) std::copy_n(h(i - k), size_, to);
    for (int k = 1; k <= kCodon; ++k, to += size_) std::copy_n(f(i - k), size_, to);
  }
  void resume(int64_t i, const int32_t* from) {
    for (int k = 1; k <= kAbove; ++k, from += size_) std::copy_n(from, size_, h(i - k));
    for (int k = 1; k <= kCodon; ++k, from += size_) std::copy_n(from, size_, f(i - k));
  }

  // Compute row i up to column `last`.
  void compute(int64_t i, size_t last) {
    const int32_t *two = h(i - 2), *three = h(i - 3), *four = h(i - 4), *gap = f(i - kCodon), *score = scores_of(i);
    int32_t *H = h(i), *F = f(i), *E = e_.data();
    const int32_t open = costs_.open, extend = costs_.extend, shift = costs_.shift;
    for (size_t j = 1; j <= last; ++j) {
      F[j] = std::max(gap[j], three[j] - open) - extend;
      const int32_t shifted = std::max(two[j - 1], four[j - 1]) - shift;
      H[j] = std::max(std::max(std::max(three[j - 1], shifted) + score[j], F[j]), 0);
    }
    // a gap that is opened after a gap costs more than the gap that is extended, so E needs no H with E in it
    int32_t left = kNone;
    for (size_t j = 1; j <= last; ++j) {
      left = std::max(left, H[j - 1] - open) - extend;
      E[j] = left;
    }
    for (size_t j = 1; j <= last; ++j) H[j] = std::max(H[j], E[j]);
  }

  // Directions of row i, which was computed last.
  void directions(int64_t i, size_t last, uint8_t* to) {
    const int32_t *two = h(i - 2), *three = h(i - 3), *four = h(i - 4), *gap = f(i - kCodon), *score = scores_of(i);
    const int32_t *H = h(i), *F = f(i), *E = e_.data();
    const int32_t open = costs_.open, shift = costs_.shift;
    for (size_t j = 1; j <= last; ++j) {
      uint8_t source = kResidueAlone;
      if (H[j] == 0) {
        source = kStop;
      } else if (H[j] == three[j - 1] + score[j]) {
        source = kPair;
      } else if (H[j] == two[j - 1] - shift + score[j]) {
        source = kTwice;
      } else if (H[j] == four[j - 1] - shift + score[j]) {
        source = kSkipped;
      } else if (H[j] == F[j]) {
        source = kCodonAlone;
      }
      const bool extends_f = gap[j] >= three[j] - open, extends_e = E[j - 1] >= H[j - 1] - open;
      to[j] = static_cast<uint8_t>(source | (extends_f ? kExtendsF : 0) | (extends_e ? kExtendsE : 0));
    }
  }

  size_t size() const { return size_; }

 private:
  static size_t slot(int64_t i, int slots) { return static_cast<size_t>((i + 4 * kSlots * kGapSlots) % slots); }
  const int32_t* scores_of(int64_t i) const { return scores_.data() + pair_.codons[i] * size_; }

  const ShiftedPair& pair_;
  const ShiftCosts& costs_;
  const size_t size_;
  std::vector<int32_t> scores_, h_, f_, e_;
};

class Alignment {
 public:
  Alignment(const ShiftedPair& pair, const ShiftCosts& costs, const AskToStop& ask)
      : pair_(pair), rows_(pair, costs), ask_(ask), apart_(rows_apart(pair.n)) {}

  ShiftedAlignment find() {
    go_forward();
    if (best_ > 0) go_back();
    return {best_, at_, static_cast<int64_t>(column_), {cigar_.rbegin(), cigar_.rend()}};
  }

 private:
  // The end: the best cell with the smallest column, then the smallest row.
  void go_forward() {
    const size_t last = rows_.size() - 1;
    kept_.reserve(static_cast<size_t>((pair_.n + apart_ - 1) / apart_) * kKept * rows_.size());
    for (int64_t i = 0; i < pair_.n; ++i) {
      if (i % apart_ == 0) {
        kept_.resize(kept_.size() + kKept * rows_.size());
        rows_.keep(i, kept_.data() + kept_.size() - kKept * rows_.size());
      }
      rows_.compute(i, last);
      count(last);
      const int32_t* const H = rows_.h(i);
      int32_t best = 0;
      for (size_t j = 1; j <= last; ++j) best = std::max(best, H[j]);
      if (best == 0 || best < best_) continue;
      const size_t column = static_cast<size_t>(std::find(H + 1, H + last, best) - H);
      if (best > best_ || column < column_) {
        best_ = best;
        column_ = column;
        at_ = i;
      }
    }
  }

  // From the end back, from checkpoint to checkpoint; `at_` is the codon of the cell, and in the end the nucleotide
  // where the alignment begins.
  void go_back() {
    std::vector<uint8_t> directions(static_cast<size_t>(apart_) * rows_.size());
    char state = 'M';
    for (int64_t begin = at_ / apart_ * apart_; begin >= 0; begin -= apart_) {
      if (at_ < begin) continue;  // a codon's step may pass over rows, but not over so many
      rows_.resume(begin, kept_.data() + static_cast<size_t>(begin / apart_) * kKept * rows_.size());
      for (int64_t i = begin; i <= at_; ++i) {
        rows_.compute(i, column_);
        rows_.directions(i, column_, directions.data() + static_cast<size_t>(i - begin) * rows_.size());
        count(column_);
      }
      while (at_ >= begin && column_ > 0) {
        const uint8_t here = directions[static_cast<size_t>(at_ - begin) * rows_.size() + column_];
        if (state == 'M' && (here & kSource) == kStop) break;
        step(here, state);
      }
      if (at_ >= begin) break;
    }
    at_ += kCodon;  // nucleotides up to the cell where it begins
  }

  void step(uint8_t here, char& state) {
    const int source = here & kSource;
    if (state == 'M' && source >= kCodonAlone) state = source == kCodonAlone ? 'I' : 'D';
    if (state == 'M') {
      add('M');
      if (source != kPair) add(source == kTwice ? 'R' : 'F');
      at_ -= source == kTwice ? kCodon - 1 : source == kSkipped ? kCodon + 1 : kCodon;
      --column_;
    } else if (state == 'I') {
      add('I');
      if (!(here & kExtendsF)) state = 'M';
      at_ -= kCodon;
    } else {
      add('D');
      if (!(here & kExtendsE)) state = 'M';
      --column_;
    }
  }

  void add(char operation) {
    if (cigar_.empty() || cigar_.back().second != operation) cigar_.push_back({0, operation});
    ++cigar_.back().first;
  }

  void count(size_t cells) {
    cells_ += static_cast<int64_t>(cells);
    if (cells_ < kCellsBetweenQuestions) return;
    cells_ = 0;
    if (ask_ && ask_()) throw Interrupted();
  }

  const ShiftedPair& pair_;
  Rows rows_;
  const AskToStop& ask_;
  const int64_t apart_;
  std::vector<int32_t> kept_;
  std::vector<std::pair<int64_t, char>> cigar_;  // from the end
  int64_t best_ = 0, at_ = 0, cells_ = 0;
  size_t column_ = 0;
};

}  // namespace

int64_t shifted_memory(int64_t n, int64_t m) {
  const int64_t apart = rows_apart(n), numbers = kCodes + kSlots + kGapSlots + 1 + (n / apart + 1) * kKept;
  return (m + 1) * (numbers * static_cast<int64_t>(sizeof(int32_t)) + std::min(apart, n));
}

std::vector<ShiftedAlignment> align_shifted(const ManyShifted& many) {
  std::vector<ShiftedAlignment> found(static_cast<size_t>(many.count));
  std::vector<int64_t> order(static_cast<size_t>(many.count));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto cells = [&](int64_t pair) { return many.places[4 * pair + 1] * many.places[4 * pair + 3]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return cells(a) > cells(b); });
  take_turns(many.count, many.threads, many.interrupted, [&](int64_t turn, const AskToStop& ask) {
    const int64_t pair = order[static_cast<size_t>(turn)];
    const int64_t* const place = many.places + 4 * pair;
    const ShiftedPair of = {many.strands + place[0], place[1], many.subjects + place[2], place[3]};
    if (of.n > 0 && of.m > 0) found[static_cast<size_t>(pair)] = Alignment(of, many.costs, ask).find();
  });
  return found;
}

}  // namespace swsearch
