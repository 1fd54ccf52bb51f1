// columns: one pass over the columns of every alignment, some alignments to a turn.
#include "pairs/columns.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "pairs/turns.hpp"

namespace swsearch {

namespace {

constexpr int64_t kPerTurn = 64;              // alignments
constexpr int64_t kPerThread = int64_t{1} << 17;  // columns below which another thread takes longer than it saves

int64_t columns_of(const Found& found, int64_t k) {
  int64_t columns = 0;
  for (int64_t run = found.run_offsets[k]; run < found.run_offsets[k + 1]; ++run) columns += found.run_lengths[run];
  return columns;
}

// Call each(k) for every alignment, and before(turn) ahead of the first of a turn.
template <class Before, class Each>
void for_all(const Found& found, Before&& before, Each&& each) {
  int64_t columns = 0;
  for (int64_t run = 0; run < found.run_offsets[found.count]; ++run) columns += found.run_lengths[run];
  const int64_t turns = (found.count + kPerTurn - 1) / kPerTurn;
  const int64_t threads = std::min<int64_t>(found.threads, 1 + columns / kPerThread);
  take_turns(turns, threads, found.interrupted, [&](int64_t turn, const AskToStop&) {
    const int64_t end = std::min(found.count, (turn + 1) * kPerTurn);
    before(turn);
    for (int64_t k = turn * kPerTurn; k < end; ++k) each(turn, k);
  });
}

// One side as it is compared and shown: a byte for each residue, and what that byte means.
struct Side {
  Side(const Found& found, const uint8_t* codes, const uint8_t* letters)
      : bytes(letters ? letters : codes), is_shown(letters != nullptr) {
    for (size_t byte = 0; byte < 256; ++byte) {
      residue[byte] = found.identities[letters ? found.encode[byte] : byte];
      shown[byte] = letters ? static_cast<uint8_t>(byte) : found.decode[byte];
      upper[byte] = shown[byte] >= 'a' && shown[byte] <= 'z' ? static_cast<uint8_t>(shown[byte] - 32) : shown[byte];
    }
  }
  const uint8_t* bytes;                // where the pool begins
  bool is_shown;                       // whether the bytes are letters
  std::array<uint8_t, 256> residue{};  // equal ones are identical
  std::array<uint8_t, 256> shown{};
  std::array<uint8_t, 256> upper{};
};

struct Sides {
  explicit Sides(const Found& found)
      : query(found, found.queries, found.query_letters), subject(found, found.subjects, found.subject_letters) {}
  bool same(uint8_t a, uint8_t b) const { return query.residue[a] == subject.residue[b]; }
  Side query, subject;
};

// One alignment, run by run: pair(a, b, n), query(a, n) and subject(b, n) for M, I and D, where a and b are places in
// the pools. Returns where both sequences are afterwards.
template <class PairRun, class QueryRun, class SubjectRun>
void walk(const Found& found, int64_t k, PairRun&& pair, QueryRun&& query, SubjectRun&& subject) {
  int64_t a = found.places[4 * k] + found.starts[2 * k], b = found.places[4 * k + 2] + found.starts[2 * k + 1];
  for (int64_t run = found.run_offsets[k]; run < found.run_offsets[k + 1]; ++run) {
    const int64_t n = found.run_lengths[run];
    const uint8_t operation = found.run_operations[run];
    if (operation == 'M') {
      pair(a, b, n);
      a += n;
      b += n;
    } else if (operation == 'I') {
      query(a, n);
      a += n;
    } else {
      subject(b, n);
      b += n;
    }
  }
}

// Identities and positives of pairs of codes, to be added up in the halves of a word.
using Kinds = std::vector<uint64_t>;

Kinds kinds_of(const Found& found) {
  Kinds kinds(kCodes * kCodes);
  for (size_t a = 0; a < kCodes; ++a) {
    for (size_t b = 0; b < kCodes; ++b) {
      const bool same = found.identities[a] == found.identities[b], positive = found.scores[a * kCodes + b] > 0;
      kinds[a * kCodes + b] = uint64_t{same} | uint64_t{same || positive} << 32;
    }
  }
  return kinds;
}

// Identities and positives of n columns that hold two residues; n < 2^32.
uint64_t kinds_in(const Found& found, const Sides& sides, const Kinds& kinds, int64_t a, int64_t b, int64_t n) {
  uint64_t sum = 0;
  if (!found.query_letters && !found.subject_letters) {
    for (int64_t c = 0; c < n; ++c) sum += kinds[size_t{found.queries[a + c]} * kCodes + found.subjects[b + c]];
    return sum;
  }
  for (int64_t c = 0; c < n; ++c) {
    const bool same = sides.same(sides.query.bytes[a + c], sides.subject.bytes[b + c]);
    const bool positive = found.scores[size_t{found.queries[a + c]} * kCodes + found.subjects[b + c]] > 0;
    sum += uint64_t{same} | uint64_t{same || positive} << 32;
  }
  return sum;
}

// What the middle line holds for two codes where nothing is masked, else for two that are not identical.
std::vector<uint8_t> marks_of(const Found& found) {
  const bool plain = !found.query_letters && !found.subject_letters;
  std::vector<uint8_t> marks(kCodes * kCodes);
  for (size_t a = 0; a < kCodes; ++a) {
    for (size_t b = 0; b < kCodes; ++b) {
      const bool same = plain && found.identities[a] == found.identities[b];
      marks[a * kCodes + b] = same ? found.decode[a] : found.scores[a * kCodes + b] > 0 ? '+' : ' ';
    }
  }
  return marks;
}

// The letters of n residues of a side.
void show(const Side& side, int64_t from, int64_t n, uint8_t* __restrict to) {
  const uint8_t* __restrict bytes = side.bytes + from;
  if (side.is_shown) {
    std::memcpy(to, bytes, static_cast<size_t>(n));
    return;
  }
  const uint8_t* __restrict shown = side.shown.data();
  for (int64_t c = 0; c < n; ++c) to[c] = shown[bytes[c]];
}

// The middle line of n columns that hold two residues.
void mark(const Found& found, const Sides& sides, const uint8_t* __restrict marks, int64_t a, int64_t b, int64_t n,
          uint8_t* __restrict to) {
  const uint8_t *codes_a = found.queries + a, *codes_b = found.subjects + b;
  for (int64_t c = 0; c < n; ++c) to[c] = marks[size_t{codes_a[c]} * kCodes + codes_b[c]];
  if (!found.query_letters && !found.subject_letters) return;
  const uint8_t *bytes_a = sides.query.bytes + a, *bytes_b = sides.subject.bytes + b;
  for (int64_t c = 0; c < n; ++c) {
    // no branch: whether two residues are the same cannot be foreseen
    const int same = -static_cast<int>(sides.same(bytes_a[c], bytes_b[c]));
    to[c] = static_cast<uint8_t>((sides.query.shown[bytes_a[c]] & same) | (to[c] & ~same));
  }
}

}  // namespace

bool fits(const Found& found) {
  const int64_t* offsets = found.run_offsets;
  if (offsets[0] != 0) return false;
  for (int64_t k = 0; k < found.count; ++k) {
    int64_t left[] = {found.places[4 * k + 1] - found.starts[2 * k],
                      found.places[4 * k + 3] - found.starts[2 * k + 1]};
    if (found.starts[2 * k] < 0 || found.starts[2 * k + 1] < 0 || left[0] < 0 || left[1] < 0) return false;
    for (int64_t run = offsets[k]; run < offsets[k + 1]; ++run) {
      const int64_t n = found.run_lengths[run];
      const uint8_t operation = found.run_operations[run];
      if (n < 1 || (operation != 'M' && operation != 'I' && operation != 'D')) return false;
      if (operation != 'D' && (left[0] -= n) < 0) return false;
      if (operation != 'I' && (left[1] -= n) < 0) return false;
    }
  }
  return true;
}

void count_columns(const Found& found, int64_t* counts) {
  const Sides sides(found);
  const Kinds kinds = kinds_of(found);
  constexpr int64_t kMost = int64_t{1} << 30;  // what the halves of a word can be sure to hold
  for_all(found, [](int64_t) {}, [&](int64_t, int64_t k) {
    int64_t pairs = 0, of_query = 0, of_subject = 0, identities = 0, positives = 0, openings = 0;
    walk(found, k, [&](int64_t a, int64_t b, int64_t n) {
      pairs += n;
      for (int64_t c = 0; c < n; c += kMost) {
        const uint64_t sum = kinds_in(found, sides, kinds, a + c, b + c, std::min(kMost, n - c));
        identities += static_cast<int64_t>(sum & 0xFFFFFFFFu);
        positives += static_cast<int64_t>(sum >> 32);
      }
    }, [&](int64_t, int64_t n) {
      of_query += n;
      ++openings;
    }, [&](int64_t, int64_t n) {
      of_subject += n;
      ++openings;
    });
    const int64_t gaps = of_query + of_subject;
    const int64_t all[kCounts] = {found.starts[2 * k] + pairs + of_query, found.starts[2 * k + 1] + pairs + of_subject,
                                  pairs + gaps, identities, positives, gaps, openings};
    for (int64_t which = 0; which < kCounts; ++which) counts[which * found.count + k] = all[which];
  });
}

bool as_long(const Found& found, const int64_t* offsets) {
  if (offsets[0] != 0) return false;
  for (int64_t k = 0; k < found.count; ++k) {
    if (offsets[k + 1] != offsets[k] + columns_of(found, k)) return false;
  }
  return true;
}

void write_rows(const Found& found, const Rows& rows) {
  const Sides sides(found);
  const std::vector<uint8_t> marks = marks_of(found);
  for_all(found, [](int64_t) {}, [&](int64_t, int64_t k) {
    int64_t at = rows.offsets[k];
    walk(found, k, [&](int64_t a, int64_t b, int64_t n) {
      show(sides.query, a, n, rows.query + at);
      show(sides.subject, b, n, rows.subject + at);
      mark(found, sides, marks.data(), a, b, n, rows.middle + at);
      at += n;
    }, [&](int64_t a, int64_t n) {
      show(sides.query, a, n, rows.query + at);
      std::memset(rows.middle + at, ' ', static_cast<size_t>(n));
      std::memset(rows.subject + at, '-', static_cast<size_t>(n));
      at += n;
    }, [&](int64_t b, int64_t n) {
      std::memset(rows.query + at, '-', static_cast<size_t>(n));
      std::memset(rows.middle + at, ' ', static_cast<size_t>(n));
      show(sides.subject, b, n, rows.subject + at);
      at += n;
    });
  });
}

namespace {

// Writes trace-back operations to where there is room for two bytes a column.
struct OperationWriter {
  char* at;
  int64_t alike = 0;  // columns that are not written yet

  void end_alike() {
    if (alike == 0) return;
    at = std::to_chars(at, at + 20, alike).ptr;
    alike = 0;
  }
  void add(uint8_t query, uint8_t subject) {
    end_alike();
    *at++ = static_cast<char>(query);
    *at++ = static_cast<char>(subject);
  }
};

}  // namespace

std::vector<std::string> trace_back_operations(const Found& found, int64_t* sizes) {
  const Sides sides(found);
  const uint8_t *queries = sides.query.bytes, *subjects = sides.subject.bytes;
  std::vector<std::string> parts(static_cast<size_t>((found.count + kPerTurn - 1) / kPerTurn));
  for_all(found, [&](int64_t turn) { parts[static_cast<size_t>(turn)].reserve(256 * kPerTurn); },
          [&](int64_t turn, int64_t k) {
    std::string& text = parts[static_cast<size_t>(turn)];
    const size_t begin = text.size();
    text.resize(begin + 2 * static_cast<size_t>(columns_of(found, k)) + 20);
    OperationWriter writer{text.data() + begin};
    walk(found, k, [&](int64_t a, int64_t b, int64_t n) {
      for (int64_t c = 0; c < n; ++c) {
        if (sides.same(queries[a + c], subjects[b + c])) {
          ++writer.alike;
        } else {
          writer.add(sides.query.upper[queries[a + c]], sides.subject.upper[subjects[b + c]]);
        }
      }
    }, [&](int64_t a, int64_t n) {
      for (int64_t c = 0; c < n; ++c) writer.add(sides.query.upper[queries[a + c]], '-');
    }, [&](int64_t b, int64_t n) {
      for (int64_t c = 0; c < n; ++c) writer.add('-', sides.subject.upper[subjects[b + c]]);
    });
    writer.end_alike();
    text.resize(static_cast<size_t>(writer.at - text.data()));
    sizes[k] = static_cast<int64_t>(text.size() - begin);
  });
  return parts;
}

}  // namespace swsearch
