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

// Splitmix64.
struct Generator {
  uint64_t state;

  uint64_t next() {
    state += kGolden;
    uint64_t mixed = state;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
  }

  // A whole number from 0 to below `limit`, which is at most 2**32: the upper half of a product.
  int64_t below(int64_t limit) { return static_cast<int64_t>(((next() >> 32) * static_cast<uint64_t>(limit)) >> 32); }
};

// FNV-1a with 64 bits.
uint64_t hash_of(const uint8_t* codes, int64_t n) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (int64_t k = 0; k < n; ++k) hash = (hash ^ codes[k]) * 0x100000001B3u;
  return hash;
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
    const int64_t begin = s_.column_offsets[block], end = s_.column_offsets[block + 1];
    uint8_t* out = s_.residues + begin * kLanes;
    std::memset(out, kPadding, static_cast<size_t>((end - begin) * kLanes));
    const int64_t last = std::min((block + 1) * kLanes, s_.n_lanes);
    for (int64_t lane = block * kLanes; lane < last; ++lane) {
      const int64_t sequence = s_.sequences[lane];
      const uint8_t* codes = s_.codes + s_.offsets[sequence];
      const int64_t n = s_.offsets[sequence + 1] - s_.offsets[sequence];
      held.assign(codes, codes + n);
      uint8_t* copy = held.data();
      Generator random = {hash_of(codes, n) + static_cast<uint64_t>(s_.copies[lane]) * 0xD1342543DE82EF95u};
      for (int64_t start = 0; start < n; start += s_.window) {
        const int64_t stop = std::min(start + s_.window, n);
        for (int64_t k = stop - 1; k > start; --k) std::swap(copy[k], copy[start + random.below(k - start + 1)]);
      }
      uint8_t* column = out + lane % kLanes;
      for (int64_t k = 0; k < n; ++k) column[k * kLanes] = copy[k];
    }
  }

  const Shuffle& s_;
  const int64_t n_blocks_;
  std::atomic<int64_t> next_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace

void run(const Shuffle& shuffle) { Blocks(shuffle).run(); }

}  // namespace swsearch
