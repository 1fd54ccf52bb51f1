// ranges: cut at windows of the array, which threads take one after the other.
#include "store/ranges.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "pairs/turns.hpp"
#include "store/crc.hpp"

namespace swsearch {

namespace {

constexpr int64_t kWindow = 256 << 10;  // bytes of the array at a time, which stay in the cache
constexpr int64_t kTogether = 4;        // windows that a thread takes at a time
constexpr int64_t kTurns = 2;           // turns below which another thread takes longer to start than it saves
constexpr int64_t kMaxPiece = 1 << 30, kMaxStep = 64;

// The part of a range that lies in a window.
struct Part {
  int64_t window, range;
  bool operator<(const Part& other) const { return window < other.window; }
};

class Reader {
 public:
  explicit Reader(const Ranges& ranges)
      : r_(ranges), pieces_(std::max<int64_t>(kWindow / r_.piece, 1)), window_(pieces_ * r_.piece) {}

  Checked run() {
    for (int64_t k = 0; k < r_.count; ++k) {
      const int64_t n = length(k);
      const int64_t last = n > 0 ? (r_.begins[k] + (n - 1) * r_.step) / window_ : -1;
      for (int64_t window = r_.begins[k] / window_; window <= last; ++window) parts_.push_back({window, k});
    }
    if (!std::is_sorted(parts_.begin(), parts_.end())) std::sort(parts_.begin(), parts_.end());
    for (size_t k = 0; k < parts_.size(); ++k) {
      if (k == 0 || parts_[k - 1].window < parts_[k].window) firsts_.push_back(k);
    }
    const int64_t n_windows = static_cast<int64_t>(firsts_.size());
    firsts_.push_back(parts_.size());
    const int64_t turns = (n_windows + kTogether - 1) / kTogether, threads = std::min(r_.threads, turns / kTurns);
    take_turns(turns, threads, r_.interrupted, [&](int64_t turn, const AskToStop&) {
      std::vector<uint8_t> bytes(static_cast<size_t>(std::min(window_, r_.size))), needed(static_cast<size_t>(pieces_));
      const int64_t last = std::min((turn + 1) * kTogether, n_windows);
      for (int64_t k = turn * kTogether; k < last; ++k) {
        const size_t which = static_cast<size_t>(k);
        take(parts_.data() + firsts_[which], parts_.data() + firsts_[which + 1], bytes.data(), needed);
      }
    });
    std::sort(found_.broken.begin(), found_.broken.end());
    return std::move(found_);
  }

 private:
  // Items of a range that lie before a place of the array.
  int64_t before(int64_t range, int64_t place) const {
    const int64_t n = (place - r_.begins[range] + r_.step - 1) / r_.step;
    return std::clamp<int64_t>(n, 0, length(range));
  }

  int64_t length(int64_t range) const { return r_.offsets[range + 1] - r_.offsets[range]; }

  // Read what parts of one window need, and copy them.
  void take(const Part* part, const Part* end, uint8_t* bytes, std::vector<uint8_t>& needed) {
    const int64_t start = part->window * window_, stop = std::min(start + window_, r_.size);
    std::fill(needed.begin(), needed.end(), 0);
    for (const Part* each = part; each < end; ++each) {
      const int64_t begin = r_.begins[each->range] - start;
      const int64_t first = (begin + before(each->range, start) * r_.step) / r_.piece;
      const int64_t last = (begin + (before(each->range, stop) - 1) * r_.step) / r_.piece;
      std::memset(needed.data() + first, 1, static_cast<size_t>(last - first + 1));
    }
    for (auto run = needed.begin(); (run = std::find(run, needed.end(), 1)) != needed.end();) {
      const auto run_end = std::find(run, needed.end(), 0);
      const int64_t from = (run - needed.begin()) * r_.piece;
      const int64_t to = std::min((run_end - needed.begin()) * r_.piece, stop - start);
      if (!read(bytes + from, to - from, r_.at + start + from)) return;
      check(bytes, from, to, start / r_.piece);
      run = run_end;
    }
    for (; part < end; ++part) {
      const int64_t first = before(part->range, start), n = before(part->range, stop) - first;
      const uint8_t* const from = bytes + (r_.begins[part->range] + first * r_.step - start);
      uint8_t* const to = r_.out + r_.offsets[part->range] + first;
      if (r_.step == 1) {
        std::memcpy(to, from, static_cast<size_t>(n));
      } else {
        for (int64_t k = 0; k < n; ++k) to[k] = from[k * r_.step];
      }
    }
  }

  // Read bytes of the file; false, and said in what was found, if there are none.
  bool read(uint8_t* to, int64_t n, int64_t at) {
    while (n > 0) {
      const ssize_t got = pread(r_.file, to, static_cast<size_t>(n), static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        const int error = got < 0 ? errno : 0;
        const std::lock_guard<std::mutex> guard(lock_);
        if (found_.wanted == 0 || at < found_.at) {
          found_.at = at;
          found_.wanted = n;
          found_.error = error;
        }
        return false;
      }
      to += got;
      at += got;
      n -= got;
    }
    return true;
  }

  // Compare whole pieces of a window, whose first has a number, with their checksums.
  void check(const uint8_t* bytes, int64_t from, int64_t to, int64_t first) {
    for (int64_t at = from; at < to; at += r_.piece) {
      const int64_t piece = first + at / r_.piece;
      if (crc_32(bytes + at, std::min(r_.piece, to - at)) == r_.sums[piece]) continue;
      const std::lock_guard<std::mutex> guard(lock_);
      found_.broken.push_back(piece);
    }
  }

  const Ranges& r_;
  const int64_t pieces_, window_;  // of a window: its pieces and its bytes
  std::vector<Part> parts_;
  std::vector<size_t> firsts_;  // of each window: its first part
  std::mutex lock_;
  Checked found_;
};

}  // namespace

bool fits(const Ranges& ranges, int64_t n_sums, int64_t room) {
  if (ranges.at < 0 || ranges.size < 0 || ranges.at > INT64_MAX - ranges.size || ranges.threads < 1 ||
      ranges.piece < 1 || ranges.piece > kMaxPiece || ranges.step < 1 || ranges.step > kMaxStep || ranges.count < 0 ||
      n_sums != ranges.size / ranges.piece + (ranges.size % ranges.piece > 0) || ranges.offsets[0] != 0 ||
      ranges.offsets[ranges.count] != room) {
    return false;
  }
  for (int64_t k = 0; k < ranges.count; ++k) {
    const int64_t begin = ranges.begins[k], end = ranges.offsets[k + 1], n = end - ranges.offsets[k];
    if (end < ranges.offsets[k] || end > room) return false;
    if (n > 0 && (begin < 0 || begin >= ranges.size || (ranges.size - 1 - begin) / ranges.step < n - 1)) return false;
  }
  return true;
}

Checked read(const Ranges& ranges) { return Reader(ranges).run(); }

}  // namespace swsearch
