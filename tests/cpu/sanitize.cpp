// sanitize: pairs in every kind of pass, their columns, shuffled copies, and ranges of a file, with several threads,
// for ThreadSanitizer; see sanitize.sh.
#include <cstdio>
#include <random>

#include "codes.hpp"
#include "isa/kernels.hpp"
#include "pairs/columns.hpp"
#include "pairs/many.hpp"
#include "shift/shifted.hpp"
#include "shuffle/scored.hpp"
#include "shuffle/shuffle.hpp"
#include "store/crc.hpp"
#include "store/ranges.hpp"

using namespace swsearch;

// Short pairs and some longer ones, side by side.
int many_that_differ(const int8_t* scores) {
  constexpr int64_t kCount = 60, kLength = 400;
  std::mt19937 generator(2);
  std::vector<uint8_t> codes(kLength);
  for (auto& code : codes) code = generator() % 4;
  std::vector<int64_t> places;
  for (int64_t k = 0; k < kCount; ++k) places.insert(places.end(), {k, kLength - k, 5 * k, kLength - 5 * k});
  const Problem costs{nullptr, nullptr, 0, 0, scores, 5, 10, 1, true, true, true, true, true, {}, {}};
  std::vector<Outcome> first;
  int wrong = 0;
  for (const int threads : {1, 2, 7}) {
    const Settings settings{32, 1 << 20, threads, 350, &pair_kernels(available_instructions().front()),
                            [] { return false; }};
    const Many many{codes.data(), codes.data(), places.data(), nullptr, kCount, costs, settings, true};
    const std::vector<Outcome> found = align_many(many);
    if (threads == 1) first = found;
    for (size_t k = 0; k < kCount; ++k) wrong += found[k].aligned.cigar != first[k].aligned.cigar;
  }
  std::printf("%d pairs side by side, %d differ from those of one thread\n", static_cast<int>(kCount), wrong);
  return wrong;
}

// All that is written of some alignments.
struct Columns {
  std::vector<int64_t> counts, sizes;
  std::vector<uint8_t> rows;
  std::string operations;
  bool operator!=(const Columns& other) const {
    return counts != other.counts || sizes != other.sizes || rows != other.rows || operations != other.operations;
  }
};

// Many alignments with gaps, masked or not: what several threads count and write against one.
int columns_alike(const int8_t* scores) {
  constexpr int64_t kCount = 1000, kRuns = 5, kLengths[kRuns] = {300, 5, 200, 40, 100}, kColumns = 645, kResidues = 700;
  constexpr char kOperations[] = "MIMDM";
  std::mt19937 generator(4);
  std::vector<uint8_t> codes(kResidues), letters(kResidues), identities(256), encode(256), decode(256), operations;
  for (size_t byte = 0; byte < 256; ++byte) {
    identities[byte] = static_cast<uint8_t>(byte);
    encode[byte] = static_cast<uint8_t>(byte % 32);
    decode[byte] = static_cast<uint8_t>(byte < 26 ? 'A' + byte : '?');
  }
  for (size_t k = 0; k < kResidues; ++k) {
    codes[k] = generator() % 4;
    letters[k] = static_cast<uint8_t>(k % 7 ? 'A' + codes[k] : 'a' + generator() % 4);
  }
  std::vector<int64_t> places, starts, offsets{0}, lengths, row_offsets{0};
  for (int64_t k = 0; k < kCount; ++k) {
    places.insert(places.end(), {k % 10, kResidues - 10, 0, kResidues});
    starts.insert(starts.end(), {k % 3, k % 5});
    lengths.insert(lengths.end(), kLengths, kLengths + kRuns);
    operations.insert(operations.end(), kOperations, kOperations + kRuns);
    offsets.push_back(offsets.back() + kRuns);
    row_offsets.push_back(row_offsets.back() + kColumns);
  }
  int wrong = 0;
  for (const bool masked : {false, true}) {
    Columns first;
    for (const int threads : {1, 2, 7}) {
      const Found found{codes.data(), codes.data(), masked ? letters.data() : nullptr, nullptr, places.data(),
                        starts.data(), offsets.data(), lengths.data(), operations.data(), kCount, scores,
                        identities.data(), encode.data(), decode.data(), threads, [] { return false; }};
      if (!fits(found) || !as_long(found, row_offsets.data())) return 1;
      Columns written;
      const size_t columns = static_cast<size_t>(kCount * kColumns);
      written.counts.resize(static_cast<size_t>(kCounts * kCount));
      written.sizes.resize(static_cast<size_t>(kCount));
      written.rows.resize(3 * columns);
      count_columns(found, written.counts.data());
      uint8_t* rows = written.rows.data();
      write_rows(found, Rows{row_offsets.data(), rows, rows + columns, rows + 2 * columns});
      for (const std::string& part : trace_back_operations(found, written.sizes.data())) written.operations += part;
      if (threads == 1) first = written;
      wrong += written != first;
    }
  }
  std::printf("columns of %d alignments, %d times other than by one thread\n", static_cast<int>(kCount), wrong);
  return wrong;
}

// Copies of sequences of two lengths; how many bytes with several threads differ from those with one.
int shuffled_alike() {
  constexpr int64_t kSequences = 40, kCopies = 64, kColumns = 304;
  std::mt19937 generator(3);
  std::vector<uint8_t> codes;
  std::vector<int64_t> offsets{0}, sequences, columns{0};
  std::vector<int32_t> copies;
  for (int64_t k = 0; k < kSequences; ++k) {
    for (int64_t n = k % 2 ? 300 : 37; n > 0; --n) codes.push_back(generator() % 20);
    offsets.push_back(static_cast<int64_t>(codes.size()));
    columns.push_back(columns.back() + kColumns);
    for (int32_t copy = 0; copy < kCopies; ++copy) {
      sequences.push_back(k);
      copies.push_back(copy);
    }
  }
  std::vector<uint8_t> first;
  int wrong = 0;
  for (const int threads : {1, 2, 7}) {
    std::vector<uint8_t> residues(static_cast<size_t>(columns.back() * kCopies));
    run(Shuffle{codes.data(), offsets.data(), sequences.data(), copies.data(), kSequences * kCopies, columns.data(), 20,
                threads, residues.data()});
    if (threads == 1) first = residues;
    wrong += residues != first;
  }
  std::printf("%d shuffled copies, %d times other than by one thread\n", static_cast<int>(kSequences * kCopies), wrong);
  return wrong;
}

// Scores with copies of sequences of many lengths, none among them; how often several threads find other ones.
int scored_alike(const int8_t* scores) {
  constexpr int64_t kQueries = 12, kSequences = 90;
  constexpr int32_t kCopies = 7;
  std::mt19937 generator(4);
  std::vector<uint8_t> codes(4000);
  for (auto& code : codes) code = generator() % 4;
  std::vector<int64_t> queries{0}, offsets{0}, pairs;
  for (int64_t k = 0; k < kQueries; ++k) queries.push_back(queries.back() + (k % 4 == 1 ? 0 : 20 + 30 * k));
  for (int64_t k = 0; k < kSequences; ++k) offsets.push_back(offsets.back() + (k % 9 == 2 ? 0 : 7 + k % 70));
  const std::vector<int32_t> longest(kQueries, 300);
  for (int64_t k = 0; k < 700; ++k) pairs.insert(pairs.end(), {(11 * k) % kQueries, (17 * k) % kSequences});
  int wrong = 0;
  for (const Mode mode : {Mode::kLocal, Mode::kGlobal, Mode::kSemiglobal}) {
    std::vector<int32_t> first;
    for (const int threads : {1, 2, 7}) {
      std::vector<int32_t> found(350 * 2 * kCopies, -1);
      ScoredCopies asked{{scores, 11, 1, mode},
                         codes.data(), queries.data(), kQueries, nullptr, nullptr, longest.data(),
                         codes.data(), offsets.data(), kSequences,
                         pairs.data(), 700, 3, kCopies, 20,
                         8, 32, threads, Way::kChosen, &search_kernels(available_instructions().front()),
                         found.data(), [] { return false; }};
      run(asked);
      if (threads == 1) first = found;
      wrong += found != first;
      // asked to stop at once: what was begun ends, and no thread is left
      asked.asked = [] { return true; };
      try {
        run(asked);
      } catch (const Interrupted&) {
      }
    }
  }
  std::printf("4,900 scores of shuffled copies in each mode, %d times other than by one thread\n", wrong);
  return wrong;
}

// Strands of several lengths with proteins, which they hold with shifts: what several threads find against one.
int shifted_alike(const int8_t* scores) {
  constexpr int64_t kCount = 40, kProtein = 150;
  std::mt19937 generator(6);
  std::vector<uint8_t> protein(kProtein), strand;
  for (auto& code : protein) {
    code = generator() % 4;
    strand.push_back(code);
    for (unsigned k = 1 + generator() % 10 % 9 / 2 % 3; k > 0; --k) strand.push_back(generator() % 4);
  }
  std::vector<int64_t> places;
  const int64_t n = static_cast<int64_t>(strand.size());
  for (int64_t k = 0; k < kCount; ++k) places.insert(places.end(), {k, n - 2 * k, k % 3, kProtein - 3 * k});
  std::vector<ShiftedAlignment> first;
  int wrong = 0;
  for (const int threads : {1, 2, 7}) {
    const ManyShifted many{strand.data(), protein.data(), places.data(), kCount, {scores, 5, 1, 4}, threads,
                           [] { return false; }};
    const std::vector<ShiftedAlignment> found = align_shifted(many);
    if (threads == 1) first = found;
    for (size_t k = 0; k < kCount; ++k) wrong += found[k].score != first[k].score || found[k].cigar != first[k].cigar;
  }
  std::printf("%d alignments with frame shifts, %d times other than by one thread\n", static_cast<int>(kCount), wrong);
  return wrong;
}

// Lanes of a file with two broken pieces: what several threads read and find against one.
int read_alike() {
  constexpr int64_t kSize = 9 << 20, kPiece = 1 << 14, kLanes = 64, kCount = 500, kLength = 2000;
  std::mt19937 generator(7);
  std::vector<uint8_t> bytes(kSize);
  for (auto& byte : bytes) byte = static_cast<uint8_t>(generator());
  std::FILE* const file = std::tmpfile();
  if (file == nullptr || std::fwrite(bytes.data(), 1, kSize, file) != kSize || std::fflush(file) != 0) return 1;
  std::vector<uint32_t> sums;
  for (int64_t at = 0; at < kSize; at += kPiece) sums.push_back(crc_32(bytes.data() + at, kPiece));
  ++sums[3];
  ++sums[500];
  std::vector<int64_t> begins, offsets{0};
  for (int64_t k = 0; k < kCount; ++k) {
    begins.push_back(static_cast<int64_t>(generator() % (kSize - kLanes * kLength)));
    offsets.push_back(offsets.back() + kLength);
  }
  begins[0] = 3 * kPiece;
  begins[1] = kSize - kLanes * kLength;
  std::vector<uint8_t> first;
  int wrong = 0;
  for (const int threads : {1, 2, 7}) {
    std::vector<uint8_t> lanes(static_cast<size_t>(offsets.back()));
    const Checked found = read(Ranges{fileno(file), 0, kSize, kPiece, sums.data(), begins.data(), offsets.data(), kCount,
                                      kLanes, threads, lanes.data(), [] { return false; }});
    if (threads == 1) first = lanes;
    wrong += lanes != first || found.broken != std::vector<int64_t>{3, 500} || found.wanted != 0;
  }
  std::fclose(file);
  std::printf("%d lanes of a file, %d times other than by one thread\n", static_cast<int>(kCount), wrong);
  return wrong;
}

int main() {
  constexpr int kRows = 900, kColumns = 1000;
  std::mt19937 generator(1);
  std::vector<int8_t> scores(kCodes * kCodes, -4);
  for (int k = 0; k < kCodes; ++k) scores[static_cast<size_t>(k * kCodes + k)] = 5;
  int wrong = 0;
  for (const bool local : {false, true}) {
    for (const bool related : {false, true}) {
      std::vector<uint8_t> query(kRows), subject(kColumns);
      for (auto& code : query) code = generator() % 4;
      for (size_t k = 0; k < kColumns; ++k) {
        subject[k] = static_cast<uint8_t>(related && k < kRows && generator() % 50 ? query[k] : generator() % 4);
      }
      Problem problem{query.data(), subject.data(), kRows, kColumns, scores.data(), 5, 10, 1, local,
                      local, local, local, local, {}, {}};
      prepare(problem);
      Aligned first{};
      for (int threads = 1; threads <= 4; ++threads) {
        const Settings settings{32, 1 << 20, threads, 350, &pair_kernels(available_instructions().front()), {}};
        const Aligned found = align(problem, settings, true);
        if (threads == 1) first = found;
        wrong += found.score != first.score || found.cigar != first.cigar;
      }
    }
  }
  std::printf("16 alignments, %d differ from those of one thread\n", wrong);
  wrong += many_that_differ(scores.data()) + columns_alike(scores.data()) + shuffled_alike() +
           scored_alike(scores.data()) + shifted_alike(scores.data()) + read_alike();
  return wrong > 0;
}
