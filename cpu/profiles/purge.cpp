// purge: each row is compared with those that stay, until it differs from them in too many columns.
#include "profiles/purge.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace swsearch {

namespace {

constexpr int64_t kTogether = 32;    // columns that are compared before differences are looked at; below 256
constexpr int64_t kCandidates = 16;  // rows that are compared with a row that stays while that is in the cache
constexpr double kRounding = 1e-9;   // what an identity may lack

// Whether a row differs from the query where both are known.
bool differs(const uint8_t* row, const uint8_t* query, int64_t n_columns) {
  for (int64_t c = 0; c < n_columns; ++c) {
    if (row[c] != query[c] && row[c] != kAbsent && row[c] != kUnknown && query[c] != kUnknown) return true;
  }
  return false;
}

// A word is that many columns. A difference spoils one word at most, so that rows that are alike in 94 % of n columns
// have half of their n / 8 words in common.
constexpr int64_t kWord = 8;
constexpr int64_t kWordsTogether = 64;  // words that are compared at once
constexpr uint8_t kNoWord = 0, kNoWordKept = 255;  // where not all cells are known: of a candidate, of one that stays

// Whether all cells of a word are known; if not, whether it has an unknown one.
bool is_known_word(const uint8_t* word, bool& has_unknown) {
  has_unknown = std::find(word, word + kWord, kUnknown) != word + kWord;
  return !has_unknown && std::find(word, word + kWord, kAbsent) == word + kWord;
}

// A byte that equal words have in common.
uint8_t hash_of(const uint8_t* word) {
  uint64_t all;
  std::memcpy(&all, word, kWord);
  return static_cast<uint8_t>(1 + (((all * 0x9E3779B97F4A7C15u) >> 32) * 254 >> 32));
}

// A row and what is compared of it. Cells are followed by kTogether more, words by up to kWordsTogether.
struct Row {
  const uint8_t *cells, *words;
  int64_t unknown_words;  // those that have an unknown cell, which may or may not be like another row's
};

// The rows that stay, their cells and words one after the other.
class Kept {
 public:
  explicit Kept(int64_t n_columns)
      : stride(n_columns + kTogether),
        n_words(n_columns / kWord),
        word_stride((n_words + kWordsTogether - 1) / kWordsTogether * kWordsTogether) {}

  int64_t count() const { return static_cast<int64_t>(unknown_words_.size()); }
  Row row(int64_t k) const { return {cells_.data() + k * stride, words_.data() + k * word_stride, unknown_words_[k]}; }
  void add(const Row& row) {
    cells_.insert(cells_.end(), row.cells, row.cells + stride);
    words_.insert(words_.end(), row.words, row.words + word_stride);
    std::replace(words_.end() - word_stride, words_.end(), kNoWord, kNoWordKept);
    unknown_words_.push_back(row.unknown_words);
  }

  const int64_t stride, n_words, word_stride;

 private:
  std::vector<uint8_t> cells_, words_;
  std::vector<int64_t> unknown_words_;
};

// A row that is compared with those that stay.
class Candidate {
 public:
  explicit Candidate(const Kept& kept)
      : n_words_(kept.n_words), cells_(kept.stride), is_known_(kept.stride), words_(kept.word_stride) {}

  void read(const uint8_t* row, int64_t n_columns, double identity) {
    goes = false;
    int64_t known = 0, known_words = 0;
    unknown_words_ = 0;
    for (int64_t c = 0; c < n_columns; ++c) known += is_known_[c] = row[c] != kAbsent && row[c] != kUnknown;
    for (int64_t w = 0; w < n_words_; ++w) {
      bool has_unknown;
      const bool is_known = is_known_word(row + w * kWord, has_unknown);
      words_[w] = is_known ? hash_of(row + w * kWord) : kNoWord;
      known_words += is_known;
      unknown_words_ += has_unknown;
    }
    std::copy(row, row + n_columns, cells_.begin());
    extent_ = extent_of(row, n_columns);
    max_different_ = static_cast<int64_t>((1.0 - identity + 2 * kRounding) * static_cast<double>(known) + 1e-6);
    min_words_ = known_words - max_different_;
  }

  Row row() const { return {cells_.data(), words_.data(), unknown_words_}; }

  // Compare it with a row that stays, as far as it is still alike.
  void compare(const Row& one, double identity) {
    if (goes || !may_be_alike(one)) return;
    int64_t different = 0;
    for (int64_t at = extent_.begin; at < extent_.end; at += kTogether) {
      uint8_t here = 0;
      for (int64_t c = at; c < at + kTogether; ++c) {
        here += (one.cells[c] != cells_[c]) & (one.cells[c] != kUnknown) & is_known_[c];
      }
      different += here;
      if (different > max_different_) return;
    }
    int64_t counted = 0;
    for (int64_t c = extent_.begin; c < extent_.end; ++c) counted += (one.cells[c] != kUnknown) & is_known_[c];
    const double same = static_cast<double>(counted - different);
    goes = same / static_cast<double>(std::max<int64_t>(1, counted)) >= identity - kRounding;
  }

  bool goes = false;  // it is alike to one that stays

 private:
  // Whether enough words are the same.
  bool may_be_alike(const Row& one) const {
    int64_t shared = one.unknown_words;
    const int64_t n = static_cast<int64_t>(words_.size());
    for (int64_t at = 0; at < n; at += kWordsTogether) {
      uint8_t here = 0;
      for (int64_t w = at; w < at + kWordsTogether; ++w) here += one.words[w] == words_[w];
      shared += here;
    }
    return shared >= min_words_;
  }

  const int64_t n_words_;
  std::vector<uint8_t> cells_, is_known_, words_;  // cells that are known are marked by 1
  Extent extent_;
  int64_t unknown_words_ = 0;
  int64_t max_different_ = 0;  // columns; with more it is not alike
  int64_t min_words_ = 0;      // with fewer in common it is not alike
};

// Of rows in the order of preference, those that stay.
std::vector<int64_t> stay(const Cells& cells, const std::vector<int64_t>& rows, double identity, Patience& patience) {
  const int64_t n = static_cast<int64_t>(rows.size());
  Kept kept(cells.n_columns);
  std::vector<Candidate> candidates(kCandidates, Candidate(kept));
  std::vector<int64_t> stays;
  for (int64_t first = 0; first < n; first += kCandidates) {
    const int64_t count = std::min(kCandidates, n - first), before = kept.count();
    for (int64_t k = 0; k < count; ++k) candidates[k].read(cells.row(rows[first + k]), cells.n_columns, identity);
    for (int64_t k = 0; k < before; ++k) {
      const Row one = kept.row(k);
      for (int64_t c = 0; c < count; ++c) candidates[c].compare(one, identity);
    }
    for (int64_t c = 0; c < count; ++c) {
      for (int64_t k = before; k < kept.count(); ++k) candidates[c].compare(kept.row(k), identity);
      if (candidates[c].goes) continue;
      kept.add(candidates[c].row());
      stays.push_back(rows[first + c]);
    }
    patience.spend(count * (before + 1) * kTogether);
  }
  return stays;
}

}  // namespace

std::vector<int64_t> unique_rows(const Cells& cells, double identity, Patience& patience) {
  const int64_t n_columns = cells.n_columns;
  std::vector<int64_t> others;
  for (int64_t k = 1; k < cells.n_rows; ++k) {
    if (differs(cells.row(k), cells.row(0), n_columns)) others.push_back(k);
  }
  const auto compare = [&](int64_t one, int64_t other) {
    return std::memcmp(cells.row(one), cells.row(other), static_cast<size_t>(n_columns));
  };
  std::sort(others.begin(), others.end(), [&](int64_t one, int64_t other) { return compare(one, other) < 0; });
  if (identity <= 1.0) {
    const auto is_same = [&](int64_t one, int64_t other) { return compare(one, other) == 0; };
    others.erase(std::unique(others.begin(), others.end(), is_same), others.end());
    // places among others, the longest first
    std::vector<int64_t> lengths, ranked(others.size());
    for (const int64_t k : others) {
      lengths.push_back(n_columns - std::count(cells.row(k), cells.row(k) + n_columns, kAbsent));
    }
    std::iota(ranked.begin(), ranked.end(), 0);
    std::stable_sort(ranked.begin(), ranked.end(), [&](int64_t a, int64_t b) { return lengths[a] > lengths[b]; });
    std::vector<int64_t> rows;
    for (const int64_t place : ranked) rows.push_back(others[place]);
    rows = stay(cells, rows, identity, patience);
    std::vector<bool> stays(static_cast<size_t>(cells.n_rows));
    for (const int64_t k : rows) stays[k] = true;
    others.erase(std::remove_if(others.begin(), others.end(), [&](int64_t k) { return !stays[k]; }), others.end());
  }
  others.insert(others.begin(), 0);
  return others;
}

}  // namespace swsearch
