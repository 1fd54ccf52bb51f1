// search: searches and pairs against the plain recurrence, with every instruction set of this processor.
//
// Needs no Python, so that it also runs under an emulator (cross.sh) and under sanitizers (sanitize.sh).
// Run: search [share of the random cases in percent [a single instruction set [random: no other cases]]]
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "isa/kernels.hpp"
#include "pairs/problem.hpp"
#include "search/search.hpp"

using namespace swsearch;

namespace {

constexpr uint8_t kPad = 31;  // no residue; scores kPadScore with everything
constexpr int8_t kPadScore = -128;
constexpr int64_t kLongest = 1 << 20;

using Codes = std::vector<uint8_t>;

// The same cases everywhere: no call draws more than one of its arguments, whose order the compiler chooses.
std::mt19937 generator(20);
int below(int n) { return static_cast<int>(generator() % static_cast<unsigned>(n)); }
int between(int low, int high) { return low + below(high - low + 1); }
template <class T>
T one_of(const std::vector<T>& all) {
  return all[static_cast<size_t>(below(static_cast<int>(all.size())))];
}

// --- costs -------------------------------------------------------------------------------------------------------

struct Scheme {
  std::vector<int8_t> scores = std::vector<int8_t>(kCodes * kCodes, kPadScore);
  int32_t open = 11, extend = 1;
  int lowest = 0, highest = 0;  // of the letters' scores

  Scheme(int32_t open_, int32_t extend_, const std::function<int(int, int)>& score) : open(open_), extend(extend_) {
    lowest = highest = score(0, 0);
    for (int a = 0; a < kPad; ++a) {
      for (int b = 0; b < kPad; ++b) set(a, b, score(a, b));
    }
  }
  void set(int a, int b, int score) {
    scores[static_cast<size_t>(a * kCodes + b)] = static_cast<int8_t>(score);
    lowest = std::min(lowest, score);
    highest = std::max(highest, score);
  }
  int32_t of(uint8_t a, uint8_t b) const { return scores[static_cast<size_t>(a) * kCodes + b]; }
  int32_t first() const { return open + extend; }
  int64_t gap(int64_t length) const { return length > 0 ? open + length * extend : 0; }
};

Scheme match_or_not(int match, int mismatch, int32_t open, int32_t extend) {
  return {open, extend, [&](int a, int b) { return a == b ? match : mismatch; }};
}

// Symmetric or not, of any range.
Scheme random_scheme() {
  static const std::vector<std::pair<int, int>> gaps = {{11, 1}, {11, 1}, {0, 0},  {0, 5},   {1, 0},
                                                        {9, 9},  {40, 3}, {100, 0}, {3'000, 20}, {10'000, 10'000}};
  const auto [open, extend] = one_of(gaps);
  const int low = one_of<int>({-128, -20, -4, -4, -1, 1}), high = one_of<int>({127, 30, 9, 3, 1});
  const bool diagonal = below(3) > 0;
  return {open, extend, [&](int a, int b) { return diagonal && a == b ? std::max(high, 5) : between(low, high); }};
}

// What swsearch/scoring.py derives from costs and lengths: whether lanes may be tried first in local mode; the
// longest subject whose values lanes of 16 bits hold.
bool may_start_at(int bits, const Scheme& scheme) {
  return scheme.first() + std::abs(std::min(scheme.lowest, 0)) + std::abs(scheme.highest) < int64_t{1} << (bits - 2);
}

int32_t longest_16(const Scheme& scheme, int64_t rows) {
  const int64_t headroom = std::max({std::abs(scheme.lowest), std::abs(scheme.highest), scheme.first()}) + 1;
  const auto fits = [&](int64_t columns) {
    const int64_t high = std::min(rows, columns) * std::max(scheme.highest, 0);
    const int64_t low = -scheme.gap(rows) - scheme.gap(columns) - scheme.first() + std::min(scheme.lowest, 0);
    return INT16_MIN + headroom < low && high < INT16_MAX - headroom;
  };
  int64_t good = 0, bad = kLongest;
  while (bad - good > 1) {
    const int64_t middle = (good + bad) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return static_cast<int32_t>(good);
}

// A query's own scores and costs by row; without costs they are the scheme's.
struct Profile {
  std::vector<int8_t> scores;
  std::vector<RowCosts> costs;
};

// A scheme whose bounds hold for profiles too.
Scheme covering(Scheme scheme, const std::vector<Profile>& profiles) {
  int32_t first = scheme.first(), extend = scheme.extend;
  for (const Profile& profile : profiles) {
    for (size_t k = 0; k < profile.scores.size(); ++k) {
      if (k % kCodes == kPad) continue;
      scheme.lowest = std::min<int>(scheme.lowest, profile.scores[k]);
      scheme.highest = std::max<int>(scheme.highest, profile.scores[k]);
    }
    for (const RowCosts& row : profile.costs) {
      first = std::max<int32_t>({first, row.deletion_first, row.insertion_first});
      extend = std::max<int32_t>({extend, row.deletion_extend, row.insertion_extend});
    }
  }
  scheme.open = first - extend;
  scheme.extend = extend;
  return scheme;
}

// --- the plain recurrence ----------------------------------------------------------------------------------------

struct Ends {
  bool query_start, query_end, subject_start, subject_end;  // which are free
};

int64_t plain_score(const Codes& query, const Codes& subject, const Scheme& scheme, bool local, const Ends& ends,
                    const Profile* own = nullptr) {
  const int64_t m = static_cast<int64_t>(query.size()), n = static_cast<int64_t>(subject.size());
  const auto edge = [&](bool is_free, int64_t k) { return static_cast<int32_t>(is_free ? 0 : -scheme.gap(k)); };
  std::vector<int32_t> H(subject.size() + 1), F(subject.size() + 1, kNever);
  for (int64_t j = 0; j <= n; ++j) H[static_cast<size_t>(j)] = edge(local || ends.subject_start, j);
  int32_t best = local ? 0 : kNever;
  const int16_t first = static_cast<int16_t>(scheme.first()), extend = static_cast<int16_t>(scheme.extend);
  int32_t left_over = 0;
  const auto look = [&](int32_t score) { best = std::max(best, score); };
  if (!local && ends.query_end) look(H.back());
  for (int64_t i = 1; i <= m; ++i) {
    const size_t place = static_cast<size_t>(i - 1);
    const int8_t* const row = own ? own->scores.data() + place * kCodes : scheme.scores.data() + query[place] * kCodes;
    const RowCosts costs = own && !own->costs.empty() ? own->costs[place] : RowCosts{first, extend, first, extend};
    left_over += i == 1 ? costs.deletion_first : costs.deletion_extend;
    int32_t diagonal = H[0], E = kNever;
    int32_t left = H[0] = local || ends.query_start ? 0 : -left_over;
    for (size_t j = 1; j <= subject.size(); ++j) {
      E = std::max(E - costs.insertion_extend, left - costs.insertion_first);
      F[j] = std::max(F[j] - costs.deletion_extend, H[j] - costs.deletion_first);
      int32_t h = std::max({diagonal + row[subject[j - 1]], E, F[j]});
      if (local) best = std::max(best, h = std::max(h, 0));
      diagonal = H[j];
      H[j] = left = h;
    }
    if (!local && ends.query_end) look(H.back());
  }
  if (!local && ends.subject_end) {
    for (const int32_t score : H) look(score);
  }
  if (!local) look(H.back());
  return best;
}

// With frame shifts, local; the query is a strand's codons. Row i is of those that end there.
int64_t plain_shifted_score(const Codes& codons, const Codes& subject, const Scheme& scheme, int32_t shift) {
  const size_t n = codons.size() + 2, m = subject.size();
  std::vector<std::vector<int32_t>> H(n + 1, std::vector<int32_t>(m + 1)), F(n + 1, std::vector<int32_t>(m + 1, kNever));
  int32_t best = 0;
  for (size_t i = 3; i <= n; ++i) {
    int32_t E = kNever;
    for (size_t j = 1; j <= m; ++j) {
      E = std::max(E - scheme.extend, H[i][j - 1] - scheme.first());
      F[i][j] = std::max(F[i - 3][j] - scheme.extend, H[i - 3][j] - scheme.first());
      int32_t before = std::max(H[i - 3][j - 1], H[i - 2][j - 1] - shift);
      if (i > 3) before = std::max(before, H[i - 4][j - 1] - shift);
      H[i][j] = std::max({before + scheme.of(codons[i - 3], subject[j - 1]), E, F[i][j], 0});
      best = std::max(best, H[i][j]);
    }
  }
  return best;
}

// --- making sequences --------------------------------------------------------------------------------------------

Codes random_codes(int length, int letters) {
  Codes codes(static_cast<size_t>(length));
  for (auto& code : codes) code = static_cast<uint8_t>(below(letters));
  return codes;
}

// A copy, with one residue in `often` changed, inserted or left out.
Codes relative(const Codes& of, int often, int letters) {
  Codes made;
  for (const uint8_t code : of) {
    const int kind = below(3 * often);
    if (kind != 0) made.push_back(kind == 1 ? static_cast<uint8_t>(below(letters)) : code);
    if (kind == 2) made.push_back(static_cast<uint8_t>(below(letters)));
  }
  return made;
}

Codes part(const Codes& of, size_t begin, size_t end) {
  begin = std::min(begin, of.size());
  return Codes(of.begin() + static_cast<int64_t>(begin), of.begin() + static_cast<int64_t>(std::min(end, of.size())));
}

// --- searches ----------------------------------------------------------------------------------------------------

// Subjects in blocks, as swsearch/blocks.py lays them out.
struct Chunk {
  std::vector<Codes> subjects;
  std::vector<uint8_t> residues;
  std::vector<int64_t> column_offsets{0};
  std::vector<int32_t> lengths;

  explicit Chunk(std::vector<Codes> some) : subjects(std::move(some)) {
    std::stable_sort(subjects.begin(), subjects.end(), [](auto& a, auto& b) { return a.size() > b.size(); });
    for (size_t k = 0; k < subjects.size(); ++k) {
      const Codes& subject = subjects[k];
      if (k % kBlockLanes == 0) {
        column_offsets.push_back(column_offsets.back() + (static_cast<int64_t>(subject.size()) + 7) / 8 * 8);
        residues.resize(static_cast<size_t>(column_offsets.back()) * kBlockLanes, kPad);
      }
      const size_t begin = static_cast<size_t>(column_offsets[k / kBlockLanes]) * kBlockLanes + k % kBlockLanes;
      for (size_t j = 0; j < subject.size(); ++j) residues[begin + j * kBlockLanes] = subject[j];
      lengths.push_back(static_cast<int32_t>(subject.size()));
    }
  }
};

struct Totals {
  int64_t searches = 0, pairs[3] = {0, 0, 0}, saturated = 0, alignments = 0, operations = 0;
};

std::vector<Instructions> instruction_sets;
std::vector<Totals> totals;  // of each

void print(const char* name, const Codes& codes) {
  std::printf("%s:", name);
  for (const uint8_t code : codes) std::printf(" %d", code);
  std::printf("\n");
}

[[noreturn]] void fail(const std::string& what, size_t set, const Scheme& scheme, const Codes& query,
                       const Codes& subject, int64_t expected, int64_t found) {
  std::printf("%s with %s: expected %" PRId64 ", found %" PRId64 "; gap open %d, extend %d, scores", what.c_str(),
              name_of(instruction_sets[set]), expected, found, scheme.open, scheme.extend);
  for (int a = 0; a < kPad; ++a) {
    for (int b = 0; b < kPad; ++b) std::printf(b ? " %d" : "\n%d", scheme.scores[static_cast<size_t>(a * kCodes + b)]);
  }
  std::printf("\n");
  print("query", query);
  print("subject", subject);
  std::exit(1);
}

struct Task {
  int first_bits = 8, last_bits = 32, threads = 1;
  std::vector<int64_t> chosen;  // empty: all
  bool all_in_32 = false;       // global and semi-global mode
  int32_t shift = 0;            // with frame shifts: what one costs
};

const std::vector<Way> kWays = {Way::kChosen, Way::kLanes, Way::kStriped};

// Search with every instruction set and way, and compare.
void check_search(const std::string& name, const std::vector<Codes>& queries, const Chunk& chunk, const Scheme& scheme,
                  Mode mode, Task task = {}, const std::vector<Profile>& profiles = {}) {
  const Scheme bounds = covering(scheme, profiles);
  const auto dearest = [](int bits) { return bits == 8 ? 1 << 6 : 1 << 14; };  // as module_search.cpp checks it
  while (task.first_bits < task.last_bits &&
         (!may_start_at(task.first_bits, bounds) || task.shift > dearest(task.first_bits))) {
    task.first_bits *= 2;
  }
  std::vector<int8_t> row_scores;
  std::vector<RowCosts> row_costs;
  for (const Profile& profile : profiles) {
    row_scores.insert(row_scores.end(), profile.scores.begin(), profile.scores.end());
    row_costs.insert(row_costs.end(), profile.costs.begin(), profile.costs.end());
  }
  Codes codes;
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> longest;
  for (const Codes& query : queries) {
    codes.insert(codes.end(), query.begin(), query.end());
    offsets.push_back(static_cast<int64_t>(codes.size()));
    longest.push_back(task.all_in_32 ? 0 : longest_16(bounds, static_cast<int64_t>(query.size())));
  }
  std::vector<int64_t> subjects = task.chosen;
  for (size_t k = 0; task.chosen.empty() && k < chunk.subjects.size(); ++k) subjects.push_back(static_cast<int64_t>(k));
  const bool shifted = mode == Mode::kShifted, local = mode == Mode::kLocal || shifted;
  const bool loose = mode == Mode::kSemiglobal;
  std::vector<int64_t> expected;
  for (size_t k = 0; k < queries.size(); ++k) {
    const Profile* const own = profiles.empty() ? nullptr : &profiles[k];
    for (const int64_t subject : subjects) {
      const Codes& other = chunk.subjects[static_cast<size_t>(subject)];
      expected.push_back(shifted ? plain_shifted_score(queries[k], other, scheme, task.shift)
                                 : plain_score(queries[k], other, scheme, local, {loose, loose, loose, loose}, own));
    }
  }
  const int64_t span = (int64_t{1} << task.last_bits) - 1;
  const int64_t below_zero = std::max(bounds.first() + bounds.extend, task.shift);
  const int64_t limit = task.last_bits == 32 ? INT32_MAX : span - below_zero;
  for (size_t turn = 0; turn < kWays.size() * instruction_sets.size(); ++turn) {
    const size_t set = turn / kWays.size();
    const Way way = kWays[turn % kWays.size()];
    std::vector<int32_t> scores(expected.size(), -1);
    std::vector<uint8_t> saturated(expected.size(), 0);
    Search search{{scheme.scores.data(), scheme.first(), scheme.extend, mode, bounds.first(), bounds.extend, task.shift},
                  codes.data(), offsets.data(), static_cast<int>(queries.size()),
                  row_scores.empty() ? nullptr : row_scores.data(), row_costs.empty() ? nullptr : row_costs.data(),
                  longest.data(),
                  chunk.residues.data(), chunk.column_offsets.data(),
                  static_cast<int64_t>(chunk.column_offsets.size()) - 1,
                  chunk.lengths.data(), static_cast<int64_t>(chunk.lengths.size()),
                  task.chosen.empty() ? nullptr : task.chosen.data(), static_cast<int64_t>(task.chosen.size()),
                  task.first_bits, task.last_bits, task.threads, way, &search_kernels(instruction_sets[set]),
                  scores.data(), saturated.data(), [](int64_t) { return false; }};
    const SearchCounts counts = run(search);
    // columns that lean reach a lane's highest value that much earlier
    const int64_t may_be_beyond = profiles.empty() || task.last_bits == 32
                                      ? limit : limit - (search.kernels->columns - 1) * bounds.extend;
    totals[set].searches += 1;
    for (int k = 0; k < 3; ++k) totals[set].pairs[k] += counts.pairs[k];
    for (size_t k = 0; k < expected.size(); ++k) {
      const size_t subject = static_cast<size_t>(subjects[k % subjects.size()]);
      if (chunk.subjects[subject].empty()) continue;  // scored by the engine itself
      const bool beyond = local && expected[k] >= limit;
      totals[set].saturated += beyond;
      if (beyond ? saturated[k] == 1 : saturated[k] == 0 && scores[k] == expected[k]) continue;
      if (local && expected[k] >= may_be_beyond && saturated[k] == 1) continue;
      fail(name + (shifted ? ", shifts cost " + std::to_string(task.shift) : "") + (local ? ", local" : loose ? ", semi-global" : ", global") + ", " + std::to_string(task.first_bits) +
               " to " + std::to_string(task.last_bits) + " bits, " + std::to_string(task.threads) + " threads, way " +
               std::to_string(static_cast<int>(way)) + ", flag " +
               std::to_string(saturated[k]) + " of " + std::to_string(beyond),
           set, scheme, queries[k / subjects.size()], chunk.subjects[subject], expected[k], scores[k]);
    }
  }
}

const std::vector<Mode> kModes = {Mode::kLocal, Mode::kGlobal, Mode::kSemiglobal};

Scheme usual() {
  return {11, 1, [](int a, int b) { return a == b ? 4 + a % 8 : between(-4, 1); }};
}

// In lanes of every width from the first.
void check_widths(const std::string& name, const std::vector<Codes>& queries, const Chunk& chunk, const Scheme& scheme,
                  Mode mode) {
  if (mode != Mode::kLocal) {
    check_search(name, queries, chunk, scheme, mode);
    check_search(name, queries, chunk, scheme, mode, {8, 32, 2, {}, true});
    return;
  }
  for (const int bits : {8, 16, 32}) check_search(name, queries, chunk, scheme, mode, {bits, 32, 2, {}, false});
}

const std::vector<std::pair<int, int>> kGaps = {{11, 1}, {0, 0}, {0, 5}, {100, 0}, {9'000, 900}};

void check_lengths() {
  std::vector<Codes> some;
  for (const int bound : {1, 4, 8, 16, 32, 64, 128}) {
    for (int length = std::max(bound - 1, 1); length <= bound + 1; ++length) some.push_back(random_codes(length, 20));
  }
  const Chunk chunk(some);
  for (const Mode mode : kModes) {
    for (const auto& [open, extend] : kGaps) {
      Scheme scheme = usual();
      scheme.open = open;
      scheme.extend = extend;
      check_widths("lengths", some, chunk, scheme, mode);
    }
  }
  for (const int count : {1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129}) {
    std::vector<Codes> subjects;
    for (int k = 0; k < count; ++k) subjects.push_back(random_codes(below(30), 20));  // some are empty
    const std::vector<Codes> queries = {random_codes(19, 20)};
    for (const Mode mode : kModes) check_widths("numbers of subjects", queries, Chunk(subjects), usual(), mode);
  }
  std::vector<Codes> letters;
  for (int code = 0; code < kPad; ++code) letters.push_back({static_cast<uint8_t>(code)});
  const Scheme any(300, 20, [](int, int) { return between(-128, 127); });
  for (const Mode mode : kModes) check_widths("letters", letters, Chunk(letters), any, mode);
}

// Strips have 2,016 rows in lanes of 8 bits, 1,008 in 16 and 504 in 32.
void check_strips() {
  for (const int rows : {504, 1'008, 2'016}) {
    for (const int length : {rows - 1, rows, rows + 1, 2 * rows, 2 * rows + 1}) {
      const Codes query = random_codes(length, 20);
      const size_t bound = static_cast<size_t>(rows);
      std::vector<Codes> subjects = {part(query, bound - 30, bound + 30), part(query, bound - 1, bound + 1),
                                     relative(part(query, bound - 60, bound + 90), 10, 20),
                                     part(query, 2 * bound - 25, 2 * bound + 25)};
      for (const int columns : {1, 7, 8, 9, 40}) subjects.push_back(random_codes(columns, 20));
      const std::vector<Codes> queries = {query, random_codes(5, 20)};
      for (const Mode mode : kModes) check_widths("strips", queries, Chunk(subjects), usual(), mode);
    }
  }
}

void check_short_queries() {
  std::vector<Codes> queries, subjects;
  for (int k = 0; k < 80; ++k) queries.push_back(random_codes(between(1, 60), 20));
  queries.insert(queries.begin() + 40, random_codes(2'500, 20));
  for (int k = 0; k < 100; ++k) subjects.push_back(random_codes(below(50), 20));
  for (const Mode mode : kModes) check_widths("short queries", queries, Chunk(subjects), usual(), mode);
}

// Every local score around what a lane holds.
void check_saturation() {
  for (const int bits : {8, 16}) {
    for (const auto& [open, extend] : std::vector<std::pair<int, int>>{{11, 1}, {0, 0}, {0, 5}, {9, 9}, {40, 3}}) {
      const int high = bits == 8 ? 11 : 127;
      Scheme scheme = match_or_not(high, -4, open, extend);
      scheme.set(1, 1, 1);
      const int most = (1 << bits) - 1 - scheme.first() - extend;
      std::vector<Codes> subjects;
      for (int score = most - 12; score <= most + 12; ++score) {
        Codes subject(static_cast<size_t>(score / high), 0);
        subject.insert(subject.end(), static_cast<size_t>(score % high), 1);
        subjects.push_back(subject);
      }
      Codes query(static_cast<size_t>(most / high + 2), 0);
      query.insert(query.end(), static_cast<size_t>(high), 1);
      const Chunk chunk(subjects);
      check_search("saturation", {query}, chunk, scheme, Mode::kLocal, {bits, bits, 1, {}, false});
      check_search("saturation", {query}, chunk, scheme, Mode::kLocal, {8, 32, 2, {}, false});
    }
  }
}

// Global and semi-global scores around what lanes of 16 bits hold, below and above.
void check_limits_16() {
  std::vector<Scheme> schemes = {match_or_not(127, -128, 20, 2), match_or_not(-1, -128, 1'000, 100),
                                 match_or_not(3, -2, 6'000, 30)};
  for (const Scheme& scheme : schemes) {
    for (const int rows : {20, 100, 290}) {
      const Codes query = random_codes(rows, 2);
      std::vector<Codes> subjects = {query, relative(query, 20, 2)};
      const int limit = std::min(longest_16(scheme, rows), 600);
      for (int length = std::max(limit - 35, 1); length <= limit + 35; ++length) {
        Codes subject = relative(query, 15, 2);
        while (static_cast<int>(subject.size()) < length) subject.push_back(static_cast<uint8_t>(below(2)));
        subject.resize(static_cast<size_t>(length));
        subjects.push_back(subject);
      }
      for (const Mode mode : {Mode::kGlobal, Mode::kSemiglobal}) {
        check_search("16 bits", {query, part(query, 0, 10)}, Chunk(subjects), scheme, mode, {8, 32, 2, {}, false});
      }
    }
  }
}

void check_random_searches(int count) {
  for (int turn = 0; turn < count; ++turn) {
    const int letters = one_of<int>({1, 2, 4, 20, 20, 31}), longest = one_of<int>({5, 40, 40, 150, 300});
    std::vector<Codes> queries, subjects;
    const int n_queries = between(1, 5), n_subjects = between(1, one_of<int>({5, 70, 140}));
    for (int k = 0; k < n_queries; ++k) queries.push_back(random_codes(between(1, longest), letters));
    for (int k = 0; k < n_subjects; ++k) {
      const bool related = below(3) == 0;
      subjects.push_back(related ? relative(one_of(queries), 12, letters) : random_codes(below(longest), letters));
    }
    const Chunk chunk(subjects);
    Task task{one_of<int>({8, 8, 16, 32}), 32, between(1, 4), {}, below(8) == 0};
    if (below(3) == 0) {
      for (int64_t k = 0; k < n_subjects; ++k) {
        if (below(3) == 0) task.chosen.push_back(k);
      }
    }
    const Scheme scheme = random_scheme();
    check_search("random", queries, chunk, scheme, one_of(kModes), task);
  }
}

// Rows of scores of a range, with costs by row unless `costliest` is negative.
Profile random_profile(const Codes& codes, int low, int high, int costliest) {
  Profile made;
  for (size_t row = 0; row < codes.size(); ++row) {
    for (int code = 0; code < kCodes; ++code) {
      const int score = code == codes[row] && below(3) > 0 ? high : between(low, high);
      made.scores.push_back(static_cast<int8_t>(code == kPad ? kPadScore : score));
    }
    if (costliest < 0) continue;
    int16_t costs[4];
    for (int k = 0; k < 4; k += 2) {
      costs[k + 1] = static_cast<int16_t>(between(0, costliest));
      costs[k] = static_cast<int16_t>(costs[k + 1] + between(0, costliest));
    }
    made.costs.push_back({costs[0], costs[1], costs[2], costs[3]});
  }
  return made;
}

void check_profiles(int count) {
  for (int turn = 0; turn < count; ++turn) {
    const int letters = one_of<int>({2, 4, 20, 31}), longest = one_of<int>({5, 40, 40, 150, 300, 700});
    const int low = one_of<int>({-127, -30, -9, -4, -4, 5}), high = one_of<int>({127, 30, 12, 9, 3, -1});
    const int costliest = one_of<int>({-1, -1, -1, 3, 12, 200, 10'000});
    std::vector<Codes> queries, subjects;
    std::vector<Profile> profiles;
    Scheme scheme = usual();
    std::tie(scheme.open, scheme.extend) = one_of(kGaps);
    if (below(8) == 0) scheme = match_or_not(3, 2, 0, between(7, 57));  // some columns lean no more
    const int n_queries = between(1, 4), n_subjects = between(1, one_of<int>({5, 70, 140}));
    for (int k = 0; k < n_queries; ++k) {
      queries.push_back(random_codes(between(1, longest), letters));
      profiles.push_back(random_profile(queries.back(), std::min(low, high), high, costliest));
    }
    for (int k = 0; k < n_subjects; ++k) {
      const bool related = below(3) == 0;
      subjects.push_back(related ? relative(one_of(queries), 12, letters) : random_codes(below(longest), letters));
    }
    int bits = one_of<int>({8, 8, 16, 32});
    while (bits < 32 && !may_start_at(bits, covering(scheme, profiles))) bits *= 2;
    const Task task{bits, one_of<int>({bits, 32, 32}), between(1, 3), {}, below(8) == 0};
    check_search("profiles", queries, Chunk(subjects), scheme, one_of(kModes), task, profiles);
  }
  // the usual scores by row, in one and in several strips
  for (const int rows : {2'015, 2'016, 2'017, 2'300}) {
    const Codes query = random_codes(rows, 20);
    Profile profile;
    const Scheme scheme = usual();
    for (const uint8_t code : query) {
      profile.scores.insert(profile.scores.end(), scheme.scores.begin() + code * kCodes,
                            scheme.scores.begin() + (code + 1) * kCodes);
    }
    const Chunk chunk({part(query, 2'000, 2'100), relative(part(query, 1'900, 2'200), 10, 20), random_codes(50, 20)});
    for (const Mode mode : kModes) check_search("profiles", {query}, chunk, scheme, mode, {}, {profile});
  }
}

// Codons of a strand that holds a protein, some of them a nucleotide early or late; between them stands anything.
Codes strand_of(const Codes& protein, int often, int letters) {
  Codes made = random_codes(between(0, 4), letters);
  for (const uint8_t code : protein) {
    const int kind = below(3 * often), far = kind == 0 ? 1 : kind == 1 ? 3 : 2;
    made.push_back(code);
    for (int k = 0; k < far; ++k) made.push_back(static_cast<uint8_t>(below(letters)));
  }
  return made;
}

void check_shifts(int count) {
  const std::vector<int> dear = {1, 5, 15, 15, 64, 65, 3'000, 10'000};
  for (int turn = 0; turn < count; ++turn) {
    const int letters = one_of<int>({1, 2, 4, 20, 20, 31}), longest = one_of<int>({5, 12, 13, 40, 100});
    std::vector<Codes> queries, subjects;
    const int n_queries = between(1, 4), n_subjects = between(1, one_of<int>({5, 70}));
    for (int k = 0; k < n_subjects; ++k) subjects.push_back(random_codes(below(longest), letters));
    for (int k = 0; k < n_queries; ++k) {
      const bool related = below(3) > 0;
      queries.push_back(related ? strand_of(one_of(subjects), 5, letters) : random_codes(between(1, 3 * longest), letters));
      if (queries.back().empty()) queries.back().push_back(0);
    }
    const Task task{one_of<int>({8, 8, 16, 32}), 32, between(1, 3), {}, false, one_of(dear)};
    check_search("shifts", queries, Chunk(subjects), below(3) ? usual() : random_scheme(), Mode::kShifted, task);
  }
  // in one and in several strips, with shifts where they meet
  for (const int rows : {504, 1'008, 2'016}) {
    for (const int length : {rows - 1, rows, rows + 1, 2 * rows + 5}) {
      const Codes protein = random_codes(length / 3 + 1, 20);
      Codes strand = strand_of(protein, 8, 20);
      strand.resize(static_cast<size_t>(length), 0);
      const size_t bound = static_cast<size_t>(rows) / 3;
      const Chunk chunk({protein, relative(part(protein, bound - 40, bound + 40), 10, 20), random_codes(50, 20),
                         part(protein, bound - 5, bound + 5), part(protein, 2 * bound - 20, 2 * bound + 20)});
      for (const int bits : {8, 16, 32}) {
        check_search("shifts", {strand, random_codes(5, 20)}, chunk, usual(), Mode::kShifted,
                     {bits, 32, 2, {}, false, 15});
      }
    }
  }
  // every score around what a lane holds, reached with shifts
  for (const int bits : {8, 16}) {
    for (const int shift : {1, 15, 64}) {
      const int high = bits == 8 ? 11 : 127;
      Scheme scheme = match_or_not(high, -4, 11, 1);
      scheme.set(1, 1, 1);
      const int most = (1 << bits) - 1 - std::max(scheme.first() + scheme.extend, shift) + shift;
      std::vector<Codes> subjects;
      for (int score = most - 8; score <= most + 8; ++score) {
        Codes subject(static_cast<size_t>(score / high), 0);
        subject.insert(subject.end(), static_cast<size_t>(score % high), 1);
        subjects.push_back(subject);
      }
      Codes query;
      for (int k = 0; k < most / high + 2; ++k) query.insert(query.end(), {0, 2, 2});
      query.insert(query.end() - 9, 2);  // one nucleotide more
      for (int k = 0; k < high; ++k) query.insert(query.end(), {1, 2, 2});
      check_search("saturation", {query}, Chunk(subjects), scheme, Mode::kShifted, {bits, bits, 1, {}, false, shift});
      check_search("saturation", {query}, Chunk(subjects), scheme, Mode::kShifted, {8, 32, 2, {}, false, shift});
    }
  }
}

void check_that_it_stops() {
  const Scheme scheme = usual();
  const Chunk chunk({random_codes(200, 20)});
  const Codes query = random_codes(300, 20);
  const int64_t offsets[] = {0, 300};
  const int32_t longest = 1'000;
  for (size_t set = 0; set < instruction_sets.size(); ++set) {
    int32_t score = 0;
    uint8_t saturated = 0;
    const Search search{{scheme.scores.data(), 12, 1, Mode::kLocal}, query.data(), offsets, 1, nullptr, nullptr, &longest,
                        chunk.residues.data(), chunk.column_offsets.data(), 1, chunk.lengths.data(), 1, nullptr, 0,
                        8, 32, 2, Way::kChosen, &search_kernels(instruction_sets[set]), &score, &saturated,
                        [](int64_t) { return true; }};
    try {
      run(search);
    } catch (const Interrupted&) {
      continue;
    }
    fail("a search that was to stop", set, scheme, query, chunk.subjects[0], 0, score);
  }
}

// --- pairs -------------------------------------------------------------------------------------------------------

// Score a path, and see that it begins and ends where it may.
bool rescore(const Aligned& found, const Codes& query, const Codes& subject, const Scheme& scheme, const Problem& p,
             int64_t& score) {
  int64_t i = found.i, j = found.j;
  score = 0;
  if (i < 0 || j < 0) return false;
  if (!p.local && ((i > 0 && (j > 0 || !p.query_start)) || (j > 0 && !p.subject_start))) return false;
  for (const auto& [length, operation] : found.cigar) {
    if (length <= 0) return false;
    if (operation != 'D') i += length;
    if (operation != 'I') j += length;
    if (i > p.m || j > p.n) return false;
    if (operation != 'M') score -= scheme.gap(length);
    for (int64_t k = length; operation == 'M' && k > 0; --k) {
      score += scheme.of(query[static_cast<size_t>(i - k)], subject[static_cast<size_t>(j - k)]);
    }
  }
  return p.local || ((i == p.m || (j == p.n && p.query_end)) && (j == p.n || (i == p.m && p.subject_end)));
}

// How the scores reach a pair: by letters, or by the query's positions, then perhaps with gap costs by position.
enum class Scores { kByLetter, kByPosition, kWithGaps };

void check_pair(const Codes& query, const Codes& subject, const Scheme& scheme, bool local, const Ends& ends,
                Settings settings, Scores given) {
  const Problem asked{query.data(), subject.data(), static_cast<int64_t>(query.size()),
                      static_cast<int64_t>(subject.size()), scheme.scores.data(), std::max(scheme.highest, 0),
                      scheme.open, scheme.extend, local, local || ends.query_start, local || ends.query_end,
                      local || ends.subject_start, local || ends.subject_end, {}, {}};
  Problem problem = asked;
  std::vector<int8_t> rows, by_letter(query.size() * kCodes);
  std::vector<int16_t> gaps;
  if (given != Scores::kByLetter) {
    for (size_t k = 0; k < query.size(); ++k) {
      for (int letter = 0; letter < kCodes; ++letter) {
        rows.push_back(scheme.scores[static_cast<size_t>(query[k] * kCodes + letter)]);
        by_letter[static_cast<size_t>(letter) * query.size() + k] = rows.back();
      }
      for (const int cost : {scheme.open, scheme.extend}) gaps.push_back(static_cast<int16_t>(cost));
      for (const int cost : {scheme.open, scheme.extend}) gaps.push_back(static_cast<int16_t>(cost));
    }
    problem.rows = rows.data();
    problem.by_letter = by_letter.data();
    problem.stride = problem.m;
    // costs that are everywhere those of the scheme need no rows of tables: the problem's own are others, which hold
    // before the query only
    if (given == Scores::kWithGaps && problem.subject_start) {
      problem.gaps = gaps.data();
      problem.open = scheme.open + 1;
    }
  }
  prepare(problem);
  const int64_t expected = plain_score(query, subject, scheme, local, ends);
  for (size_t set = 0; set < instruction_sets.size(); ++set) {
    settings.kernels = &pair_kernels(instruction_sets[set]);
    Aligned found;
    try {
      found = align(problem, settings, true);
    } catch (const MemoryNeeded& needed) {
      settings.memory = 2 * needed.bytes;
      found = align(problem, settings, true);
    }
    int64_t score;
    const bool possible = rescore(found, query, subject, scheme, asked, score);
    totals[set].alignments += 1;
    totals[set].operations += static_cast<int64_t>(found.cigar.size());
    if (possible && found.score == expected && score == expected) continue;
    std::string what = "a pair, scores " + std::to_string(static_cast<int>(given)) + (local ? ", local" : ", ends");
    for (const bool end : {ends.query_start, ends.query_end, ends.subject_start, ends.subject_end}) {
      what += local ? "" : end ? " free" : " fixed";
    }
    what += ", tile " + std::to_string(settings.tile) + ", beam " + std::to_string(settings.beam) + ", threads " +
            std::to_string(settings.threads) + ", memory " + std::to_string(settings.memory) + ", path (" +
            std::to_string(found.i) + ", " + std::to_string(found.j) + ")";
    for (const auto& [length, operation] : found.cigar) what += " " + std::to_string(length) + operation;
    fail(what + (possible ? "" : " impossible") + " scores " + std::to_string(score), set, scheme, query, subject,
         expected, found.score);
  }
}

void check_pairs(int count) {
  for (int turn = 0; turn < count; ++turn) {
    const int letters = one_of<int>({1, 2, 4, 4, 20}), longest = one_of<int>({3, 40, 100, 400, 400, 1'200});
    const Codes query = random_codes(below(longest), letters);
    const bool related = below(2) == 0;
    const int often = one_of<int>({4, 30});
    const Codes subject = related ? relative(query, often, letters) : random_codes(below(longest), letters);
    const Settings settings{one_of<int>({0, 1, 3, 16, 33, 256}), one_of<int64_t>({3'000, 200'000, 1 << 24}),
                            between(1, 3), one_of<int64_t>({0, 20, 350}), nullptr, {}};
    if (settings.tile > 0 && settings.tile < 16 && longest > 100) continue;  // threads for 100,000 tiles of a cell
    const Ends ends{below(2) == 0, below(2) == 0, below(2) == 0, below(2) == 0};
    const Scheme scheme = random_scheme();
    const Scores given = one_of<Scores>({Scores::kByLetter, Scores::kByPosition, Scores::kWithGaps});
    check_pair(query, subject, scheme, below(3) == 0, ends, settings, given);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int share = argc > 1 ? std::atoi(argv[1]) : 100;
  instruction_sets = available_instructions();
  Instructions only;
  if (argc > 2) {
    if (!find_instructions(argv[2], only)) return std::printf("expected an instruction set that is here\n"), 2;
    instruction_sets = {only};
  }
  totals.resize(instruction_sets.size());
  if (argc <= 3) {
    check_lengths();
    check_short_queries();
    check_strips();
    check_limits_16();
    check_saturation();
  }
  check_that_it_stops();
  check_random_searches(8 * share);
  check_profiles(4 * share);
  check_shifts(4 * share);
  check_pairs(20 * share);
  for (size_t set = 0; set < instruction_sets.size(); ++set) {
    const Totals& all = totals[set];
    std::printf("%s: %" PRId64 " searches, %" PRId64 ", %" PRId64 " and %" PRId64
                " scores in 8, 16 and 32 bits, %" PRId64 " beyond them; %" PRId64 " alignments, %" PRId64
                " runs of operations; all as the plain recurrence has them\n",
                name_of(instruction_sets[set]), all.searches, all.pairs[0], all.pairs[1], all.pairs[2], all.saturated,
                all.alignments, all.operations);
  }
  return 0;
}
