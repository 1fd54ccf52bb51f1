// shuffle: the generator, one lane, and threads that take blocks.
#include "shuffle/shuffle.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace swsearch {

namespace {

constexpr int64_t kLanes = 64;            // LANES of swsearch/blocks.py
constexpr uint8_t kPadding = 31;          // PAD of swsearch/alphabet.py
constexpr int64_t kPerThread = 64 << 10;  // residues below which another thread takes longer to start than it saves

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15u;

constexpr int64_t kTogether = 4;  // copies of one sequence that are shuffled side by side: their swaps do not wait

// The next number of splitmix64, from 0 to below `limit`, which is at most 2**32: the upper half of a product.
int64_t below(uint64_t& state, int64_t limit) {
  state += kGolden;
  uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
  mixed ^= mixed >> 31;
  return static_cast<int64_t>(((mixed >> 32) * static_cast<uint64_t>(limit)) >> 32);
}

// FNV-1a with 64 bits.
uint64_t hash_of(const uint8_t* codes, int64_t n) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (int64_t k = 0; k < n; ++k) hash = (hash ^ codes[k]) * 0x100000001B3u;
  return hash;
}

// Shuffle, reverse or copy up to kTogether copies of a sequence into `held`, residue by residue and copy by copy.
void shuffle_together(const uint8_t* codes, int64_t n, uint64_t hash, const int32_t* copies, int64_t count,
                      int64_t window, uint8_t* held) {
  uint64_t states[kTogether];
  for (int64_t c = 0; c < kTogether; ++c) {
    states[c] = hash + static_cast<uint64_t>(copies[std::min(c, count - 1)]) * 0xD1342543DE82EF95u;
  }
  for (int64_t k = 0; k < n; ++k) std::memset(held + k * kTogether, codes[k], kTogether);
  const bool any = std::any_of(copies, copies + count, [](int32_t copy) { return copy > kReversed; });
  for (int64_t start = 0; any && start < n; start += window) {
    const int64_t stop = std::min(start + window, n);
    uint8_t* const from = held + start * kTogether;
    for (int64_t k = stop - 1 - start; k > 0; --k) {
      for (int64_t c = 0; c < kTogether; ++c) {
        std::swap(from[k * kTogether + c], from[below(states[c], k + 1) * kTogether + c]);
      }
    }
  }
  for (int64_t c = 0; c < count; ++c) {
    if (copies[c] > kReversed) continue;
    const bool backwards = copies[c] == kReversed;
    for (int64_t k = 0; k < n; ++k) held[k * kTogether + c] = codes[backwards ? n - 1 - k : k];
  }
}

class Blocks {
 public:
  explicit Blocks(const Shuffle& shuffle) : s_(shuffle), n_blocks_((shuffle.n_lanes + kLanes - 1) / kLanes) {}

  void run() {
    const int64_t residues = n_blocks_ > 0 ? s_.column_offsets[n_blocks_] * kLanes : 0;
    const int64_t useful = std::min<int64_t>({s_.threads, n_blocks_, residues / kPerThread});
    std::vector<std::thread> others;
    for (int64_t k = 1; k < useful; ++k) {
      try {
        others.emplace_back([this] { take(); });
      } catch (const std::system_error&) {
        break;  // no more threads to be had: fewer do it too
      }
    }
    take();
    for (std::thread& each : others) each.join();
    if (failed_) throw std::bad_alloc();
  }

 private:
  void take() {
    try {
      std::vector<uint8_t> held;
      for (int64_t block = next_++; block < n_blocks_; block = next_++) fill(block, held);
    } catch (const std::bad_alloc&) {
      failed_ = true;  // thrown again where a caller can catch it
    }
  }

  void fill(int64_t block, std::vector<uint8_t>& held) {
    const int64_t begin = s_.column_offsets[block], end = s_.column_offsets[block + 1], first = block * kLanes;
    shuffle_block(s_, s_.sequences + first, s_.copies + first, std::min(kLanes, s_.n_lanes - first), end - begin,
                  s_.residues + begin * kLanes, held);
  }

  const Shuffle& s_;
  const int64_t n_blocks_;
  std::atomic<int64_t> next_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace

void run(const Shuffle& shuffle) { Blocks(shuffle).run(); }

void shuffle_block(const Shuffle& shuffle, const int64_t* sequences, const int32_t* copies, int64_t lanes,
                   int64_t columns, uint8_t* out, std::vector<uint8_t>& held) {
  std::memset(out, kPadding, static_cast<size_t>(columns * kLanes));
  uint64_t hash = 0;
  for (int64_t lane = 0, together = 0; lane < lanes; lane += together) {
    const int64_t sequence = sequences[lane], begin = shuffle.offsets[sequence];
    const int64_t n = shuffle.offsets[sequence + 1] - begin;
    const uint8_t* const codes = shuffle.codes + begin;
    if (lane == 0 || sequence != sequences[lane - 1]) hash = hash_of(codes, n);
    together = 1;
    while (together < kTogether && lane + together < lanes && sequences[lane + together] == sequence) ++together;
    held.resize(static_cast<size_t>(n * kTogether));
    shuffle_together(codes, n, hash, copies + lane, together, shuffle.window, held.data());
    uint8_t* const column = out + lane;
    if (together == kTogether) {
      for (int64_t k = 0; k < n; ++k) std::memcpy(column + k * kLanes, held.data() + k * kTogether, kTogether);
    } else {
      for (int64_t k = 0; k < n; ++k) {
        for (int64_t c = 0; c < together; ++c) column[k * kLanes + c] = held[static_cast<size_t>(k * kTogether + c)];
      }
    }
  }
}

}  // namespace swsearch
