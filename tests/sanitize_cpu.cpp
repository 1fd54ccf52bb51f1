// sanitize_cpu: pairs in every kind of pass with one to four threads, for ThreadSanitizer; see sanitize_cpu.sh.
#include <cstdio>
#include <random>

#include "problem.hpp"

using namespace swsearch;

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
        const Settings settings{32, 1 << 20, threads, 350, &kernels_of(available_instructions().front()), {}};
        const Aligned found = align(problem, settings, true);
        if (threads == 1) first = found;
        wrong += found.score != first.score || found.cigar != first.cigar;
      }
    }
  }
  std::printf("16 alignments, %d differ from those of one thread\n", wrong);
  return wrong > 0;
}
