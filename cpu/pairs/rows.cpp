// rows: tables of H, E and F row by row, and the way back through rows that were kept.
#include "pairs/rows.hpp"

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
  Rows(const Problem& problem, const Used* used)
      : problem_(problem), used_(used), size_(static_cast<size_t>(problem.n) + 1),
        profile_(problem.rows ? 0 : kCodes * size_), patched_(size_), before_(size_), h_(size_), e_(size_), f_(size_) {
    if (!problem.rows) {
      for (int letter = 0; letter < kCodes; ++letter) {
        int32_t* row = profile_.data() + static_cast<size_t>(letter) * size_;
        for (int64_t j = 1; j <= problem.n; ++j) row[j] = problem.scores[letter * kCodes + problem.subject[j - 1]];
      }
    }
    for (int64_t j = 0; j <= problem.n; ++j) h_[static_cast<size_t>(j)] = problem.above(j);
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
    take_costs(i);
    pair_ = scores_of(i);
    const int32_t* pair = pair_;
    std::swap(before_, h_);
    const int32_t floor = problem_.local ? 0 : INT32_MIN;
    const int32_t open_f = open_f_, extend_f = extend_f_, open_e = open_e_, extend_e = extend_e_;
    const int32_t* before = before_.data();
    int32_t *h = h_.data(), *e = e_.data(), *f = f_.data();
    h[0] = problem_.query_start ? 0 : before[0] - extend_f - (i == 1 ? open_f : 0);
    for (int64_t j = 1; j <= last; ++j) {
      f[j] = std::max(f[j], before[j] - open_f) - extend_f;
      h[j] = std::max(std::max(before[j - 1] + pair[j], f[j]), floor);
    }
    // a gap that is opened after a gap costs more than the gap that is extended, so E needs no H with E in it
    e[0] = kNone;
    int32_t gap = kNone;
    for (int64_t j = 1; j <= last; ++j) {
      gap = std::max(gap, h[j - 1] - open_e) - extend_e;
      e[j] = gap;
    }
    for (int64_t j = 1; j <= last; ++j) h[j] = std::max(h[j], e[j]);
  }

  // Look at row i, which was computed last, for a better end.
  void look(int64_t i, End& end) const {
    if (!problem_.local) {
      const int64_t n = problem_.n;
      const bool is_last = i == problem_.m;
      for (int64_t j = 1; is_last && problem_.subject_end && j < n; ++j) end.look(h_[static_cast<size_t>(j)], i, j);
      if (is_last || problem_.query_end) end.look(h_[static_cast<size_t>(n)], i, n);
      return;
    }
    int32_t best = 0;
    for (size_t j = 1; j < size_; ++j) best = std::max(best, h_[j]);
    if (best < end.score || best == 0) return;
    end.look(best, i, std::find(h_.begin() + 1, h_.end(), best) - h_.begin());
  }

  // Directions of the row that was computed last, up to column `last`; `f_before` is F of the row before it.
  void directions(int64_t last, const std::vector<int32_t>& f_before, uint8_t* to) const {
    for (int64_t column = 1; column <= last; ++column) {
      const size_t j = static_cast<size_t>(column);
      uint8_t source = kGapInQuery;
      if (problem_.local && h_[j] == 0) {
        source = kStop;
      } else if (h_[j] == before_[j - 1] + pair_[j]) {
        source = kPair;
      } else if (h_[j] == f_[j]) {
        source = kGapInSubject;
      }
      const bool f = f_before[j] >= before_[j] - open_f_, e = e_[j - 1] >= h_[j - 1] - open_e_;
      to[j] = static_cast<uint8_t>(source | (f ? kExtendsF : 0) | (e ? kExtendsE : 0));
    }
  }

  const std::vector<int32_t>& f() const { return f_; }
  size_t size() const { return size_; }
  // Bytes of the tables, and of one more row.
  static int64_t bytes(const Problem& problem) {
    return static_cast<int64_t>(sizeof(int32_t)) * (problem.n + 1) * ((problem.rows ? 0 : kCodes) + 6);
  }

 private:
  // Gap costs of row i.
  void take_costs(int64_t i) {
    const int16_t* own = problem_.gaps ? problem_.gaps + (i - 1) * kGapCosts : nullptr;
    open_f_ = own ? own[kDeletionOpen] : problem_.open;
    extend_f_ = own ? own[kDeletionExtend] : problem_.extend;
    open_e_ = own ? own[kInsertionOpen] : problem_.open;
    extend_e_ = own ? own[kInsertionExtend] : problem_.extend;
  }

  const int32_t* scores_of(int64_t i) {
    const size_t row = static_cast<size_t>(i - 1);
    const bool is_patched = used_ && !(*used_)[row].empty();
    if (problem_.rows) {
      const int8_t* scores = problem_.rows + row * kCodes;
      for (int64_t j = 1; j <= problem_.n; ++j) patched_[static_cast<size_t>(j)] = scores[problem_.subject[j - 1]];
    } else {
      const int32_t* all = profile_.data() + problem_.query[row] * size_;
      if (!is_patched) return all;
      std::copy(all, all + size_, patched_.begin());
    }
    if (is_patched) {
      for (const int32_t j : (*used_)[row]) patched_[static_cast<size_t>(j) + 1] = kNone;
    }
    return patched_.data();
  }

  const Problem& problem_;
  const Used* used_;
  size_t size_;
  std::vector<int32_t> profile_, patched_, before_, h_, e_, f_;
  const int32_t* pair_ = nullptr;  // scores of the row that was computed last
  int32_t open_f_ = 0, extend_f_ = 0, open_e_ = 0, extend_e_ = 0;
};

// Asks from time to time whether to stop.
class Question {
 public:
  explicit Question(const AskToStop& interrupted) : interrupted_(interrupted) {}
  void after(int64_t cells) {
    all_ += cells;
    unasked_ += cells;
    if (unasked_ < kCellsBetweenQuestions) return;
    unasked_ = 0;
    if (interrupted_ && interrupted_()) throw Interrupted{};
  }
  int64_t cells() const { return all_; }

 private:
  const AskToStop& interrupted_;
  int64_t all_ = 0, unasked_ = 0;
};

// H and F of every `step`-th row are kept: 8 bytes per column for each of them, and a byte per column for each of
// the `step` rows whose directions are kept; both together are smallest for this.
int64_t step_of(const Problem& problem) {
  return static_cast<int64_t>(std::ceil(std::sqrt(8.0 * static_cast<double>(problem.m))));
}

int64_t kept_rows(const Problem& problem) { return (problem.m + step_of(problem) - 1) / step_of(problem); }

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
    if (path.j == 0) return;
  }
}

// Compute all rows, look for the best end, and follow the way back from it.
Aligned align_rows(const Problem& problem, const Used* used, End end, bool with_path, const AskToStop& interrupted) {
  Aligned found{};
  Rows rows(problem, used);
  Question question(interrupted);
  const int64_t step = step_of(problem), nowhere = INT64_MAX;
  const size_t stride = 2 * rows.size();
  std::vector<int32_t> kept(with_path ? static_cast<size_t>(kept_rows(problem)) * stride : 0);
  for (int64_t i = 1; i <= problem.m; ++i) {
    if (with_path && (i - 1) % step == 0) rows.keep(kept.data() + static_cast<size_t>((i - 1) / step) * stride);
    rows.compute(i, problem.n);
    rows.look(i, end);
    question.after(problem.n);
  }
  if (end.i == nowhere) return found;
  found.score = end.score;
  found.passes = 1;
  Path path{end.i, end.j, 'M', false, {}};
  std::vector<uint8_t> directions(with_path ? static_cast<size_t>(step) * rows.size() : 0);
  while (with_path && !path.done && path.i > 0 && path.j > 0) {
    const int64_t block = (path.i - 1) / step, first = block * step, last = path.j;
    rows.resume(kept.data() + static_cast<size_t>(block) * stride);
    for (int64_t i = first + 1; i <= path.i; ++i) {
      const std::vector<int32_t> f_before = rows.f();
      rows.compute(i, last);
      rows.directions(last, f_before, directions.data() + static_cast<size_t>(i - first - 1) * rows.size());
      question.after(last);
    }
    follow(path, first, directions, rows.size());
  }
  if (with_path) finish(problem, path);
  found.i = path.i;
  found.j = path.j;
  found.cells = question.cells();
  found.cigar.assign(path.runs.rbegin(), path.runs.rend());
  return found;
}

}  // namespace

Aligned align_by_rows(const Problem& problem, const Settings& settings, bool with_path) {
  int64_t bytes = Rows::bytes(problem);
  if (with_path) bytes += (8 * kept_rows(problem) + step_of(problem)) * (problem.n + 1);
  if (bytes > settings.memory) throw MemoryNeeded{bytes};
  return align_rows(problem, nullptr, border_ends(problem), with_path, settings.interrupted);
}

Aligned align_unused(const Problem& problem, const Used& used, int64_t least, const AskToStop& interrupted) {
  if (problem.m == 0 || problem.n == 0) return {};
  End end;
  end.score = least;
  end.i = end.j = INT64_MAX;
  return align_rows(problem, &used, end, true, interrupted);
}

}  // namespace swsearch
