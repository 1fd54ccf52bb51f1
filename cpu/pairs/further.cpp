// further: the recurrence row by row, and the way back through rows that were kept.
#include "pairs/further.hpp"

#include <cmath>

namespace swsearch {

namespace {

constexpr int32_t kNone = -(1 << 29);  // minus infinity; REACH_LIMIT of swsearch/engines/cpu/tracing.py leaves room
constexpr int64_t kCellsBetweenQuestions = 1 << 26;

// A direction: where H comes from, and whether the gaps that end here are extended.
enum : uint8_t { kStop = 0, kPair = 1, kGapInSubject = 2, kGapInQuery = 3, kSource = 3, kExtendsF = 4, kExtendsE = 8 };

// Rows of the recurrence, one after the other. Entry j of a row belongs to the first j subject residues.
class Rows {
 public:
  Rows(const Problem& problem, const Used& used)
      : problem_(problem), used_(used), size_(static_cast<size_t>(problem.n) + 1), profile_(kCodes * size_),
        patched_(size_), before_(size_), h_(size_), e_(size_), f_(size_) {
    for (int letter = 0; letter < kCodes; ++letter) {
      int32_t* row = profile_.data() + static_cast<size_t>(letter) * size_;
      for (int64_t j = 1; j <= problem.n; ++j) row[j] = problem.scores[letter * kCodes + problem.subject[j - 1]];
    }
    start();
  }

  void start() {
    std::fill(h_.begin(), h_.end(), 0);
    std::fill(f_.begin(), f_.end(), kNone);
  }
  // H and F of the last row are all that the next one takes.
  void keep(int32_t* to) const {
    std::copy(h_.begin(), h_.end(), to);
    std::copy(f_.begin(), f_.end(), to + size_);
  }
  void resume(const int32_t* from) {
    std::copy(from, from + size_, h_.begin());
    std::copy(from + size_, from + 2 * size_, f_.begin());
  }

  // Compute row i up to column `last`.
  void compute(int64_t i, int64_t last) {
    const int32_t* pair = scores_of(i);
    std::swap(before_, h_);
    const int32_t open = problem_.open, extend = problem_.extend;
    const int32_t* before = before_.data();
    int32_t *h = h_.data(), *e = e_.data(), *f = f_.data();
    h[0] = 0;
    for (int64_t j = 1; j <= last; ++j) {
      f[j] = std::max(f[j], before[j] - open) - extend;
      h[j] = std::max(std::max(before[j - 1] + pair[j], f[j]), 0);
    }
    // a gap that is opened after a gap costs more than the gap that is extended, so E needs no H with E in it
    e[0] = kNone;
    int32_t gap = kNone;
    for (int64_t j = 1; j <= last; ++j) {
      gap = std::max(gap, h[j - 1] - open) - extend;
      e[j] = gap;
    }
    for (int64_t j = 1; j <= last; ++j) h[j] = std::max(h[j], e[j]);
  }

  // Look at the row that was computed last for a better end.
  void look(int64_t i, End& end) const {
    int32_t best = 0;
    for (size_t j = 1; j < size_; ++j) best = std::max(best, h_[j]);
    if (best < end.score || best == 0) return;
    end.look(best, i, std::find(h_.begin() + 1, h_.end(), best) - h_.begin());
  }

  // Directions of row i, which was computed last, up to column `last`; `f_before` is F of the row before it.
  void directions(int64_t i, int64_t last, const std::vector<int32_t>& f_before, uint8_t* to) {
    const int32_t* pair = scores_of(i);
    for (int64_t column = 1; column <= last; ++column) {
      const size_t j = static_cast<size_t>(column);
      uint8_t source = kGapInQuery;
      if (h_[j] == 0) {
        source = kStop;
      } else if (h_[j] == before_[j - 1] + pair[j]) {
        source = kPair;
      } else if (h_[j] == f_[j]) {
        source = kGapInSubject;
      }
      const bool f = f_before[j] >= before_[j] - problem_.open, e = e_[j - 1] >= h_[j - 1] - problem_.open;
      to[j] = static_cast<uint8_t>(source | (f ? kExtendsF : 0) | (e ? kExtendsE : 0));
    }
  }

  const std::vector<int32_t>& f() const { return f_; }
  size_t size() const { return size_; }

 private:
  const int32_t* scores_of(int64_t i) {
    const size_t row = static_cast<size_t>(i - 1);
    const int32_t* all = profile_.data() + problem_.query[row] * size_;
    if (used_[row].empty()) return all;
    std::copy(all, all + size_, patched_.begin());
    for (const int32_t j : used_[row]) patched_[static_cast<size_t>(j) + 1] = kNone;
    return patched_.data();
  }

  const Problem& problem_;
  const Used& used_;
  size_t size_;
  std::vector<int32_t> profile_, patched_, before_, h_, e_, f_;
};

// Follows the directions of rows `first` + 1 to `path.i`, in which it begins, until it stops or leaves them.
void follow(Path& path, int64_t first, const std::vector<uint8_t>& directions, size_t width) {
  while (path.i > first) {
    const uint8_t here = directions[static_cast<size_t>(path.i - first - 1) * width + static_cast<size_t>(path.j)];
    if (path.state == 'M') {
      switch (here & kSource) {
        case kStop:
          path.done = true;
          return;
        case kPair:
          path.push('M');
          --path.i;
          --path.j;
          break;
        case kGapInSubject:
          path.state = 'I';
          break;
        default:
          path.state = 'D';
      }
    } else if (path.state == 'I') {
      path.push('I');
      if ((here & kExtendsF) == 0) path.state = 'M';
      --path.i;
    } else {
      path.push('D');
      if ((here & kExtendsE) == 0) path.state = 'M';
      --path.j;
    }
    if (path.state == 'M' && (path.i == 0 || path.j == 0)) {
      path.done = true;
      return;
    }
  }
}

}  // namespace

void use(Used& used, int64_t i, int64_t j, const std::vector<std::pair<int64_t, char>>& cigar) {
  for (const auto& [length, operation] : cigar) {
    if (operation == 'M') {
      for (int64_t k = 0; k < length; ++k) {
        std::vector<int32_t>& row = used[static_cast<size_t>(i + k)];
        const int32_t column = static_cast<int32_t>(j + k);
        row.insert(std::lower_bound(row.begin(), row.end(), column), column);
      }
    }
    if (operation != 'D') i += length;
    if (operation != 'I') j += length;
  }
}

Aligned next_alignment(const Problem& problem, const Used& used, int64_t least, const AskToStop& interrupted) {
  Aligned found{};
  if (problem.m == 0 || problem.n == 0) return found;
  Rows rows(problem, used);
  // H and F of every `step`-th row are kept: 8 bytes per column for each of them, and a byte per column for each of
  // the `step` rows whose directions are kept; both together are smallest for this
  const int64_t step = static_cast<int64_t>(std::ceil(std::sqrt(8.0 * static_cast<double>(problem.m))));
  const size_t stride = 2 * rows.size();
  std::vector<int32_t> kept(static_cast<size_t>((problem.m + step - 1) / step) * stride);
  int64_t unasked = 0;
  const auto ask = [&](int64_t cells) {
    found.cells += cells;
    unasked += cells;
    if (unasked < kCellsBetweenQuestions) return;
    unasked = 0;
    if (interrupted && interrupted()) throw Interrupted{};
  };
  End end;
  end.score = least;
  end.i = end.j = INT64_MAX;
  for (int64_t i = 1; i <= problem.m; ++i) {
    if ((i - 1) % step == 0) rows.keep(kept.data() + static_cast<size_t>((i - 1) / step) * stride);
    rows.compute(i, problem.n);
    rows.look(i, end);
    ask(problem.n);
  }
  if (end.i == INT64_MAX) return found;
  Path path{end.i, end.j, 'M', false, {}};
  std::vector<uint8_t> directions(static_cast<size_t>(step) * rows.size());
  while (!path.done) {
    const int64_t block = (path.i - 1) / step, first = block * step, last = path.j;
    rows.resume(kept.data() + static_cast<size_t>(block) * stride);
    for (int64_t i = first + 1; i <= path.i; ++i) {
      const std::vector<int32_t> f_before = rows.f();
      rows.compute(i, last);
      rows.directions(i, last, f_before, directions.data() + static_cast<size_t>(i - first - 1) * rows.size());
      ask(last);
    }
    follow(path, first, directions, rows.size());
  }
  found.score = end.score;
  found.i = path.i;
  found.j = path.j;
  found.cigar.assign(path.runs.rbegin(), path.runs.rend());
  return found;
}

}  // namespace swsearch
