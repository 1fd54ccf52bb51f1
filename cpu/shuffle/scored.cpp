// scored: blocks of copies, the largest first, that threads take, shuffle and score.
#include "shuffle/scored.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace swsearch {

namespace {

constexpr auto kPatience = std::chrono::milliseconds(50);  // between two looks at whether to stop
constexpr int64_t kColumnMultiple = 8;                     // of a block: COLUMN_MULTIPLE of swsearch/blocks.py
// Work that may be added to share out what one thread would do, in what that is. A choice: queries of 600 residues or
// more, with vectors of 64 bytes; a search does other things meanwhile.
constexpr int64_t kMostExtra = 3;

// Up to 64 copies that are scored with one query: lanes from `first` on of the pairs in their order.
struct Item {
  int64_t query, first;
  int32_t lanes;
  bool striped;  // one copy that has all lanes of a vector
  int64_t cost;  // of scoring, as search.hpp counts it
};

bool costs_less(const Item& a, const Item& b) { return a.cost < b.cost; }

// What a thread works in.
struct Room {
  explicit Room(const std::atomic<bool>& stop) : scorer(stop) {}
  Scorer scorer;
  std::vector<uint8_t> residues, held;
};

class Copies {
 public:
  explicit Copies(const ScoredCopies& asked) : s_(asked), order_(static_cast<size_t>(asked.n_pairs)) {
    sort_pairs();
    cut();
    share_out();
  }

  void run() {
    const size_t useful = std::min<size_t>(static_cast<size_t>(s_.threads), items_.size());
    std::vector<std::thread> others;
    others.reserve(useful);
    for (size_t k = 1; k < useful; ++k) {
      {
        const std::lock_guard<std::mutex> guard(lock_);
        ++running_;
      }
      try {
        others.emplace_back([this] {
          take(false);
          ended();
        });
      } catch (const std::exception&) {  // system_error, or bad_alloc
        ended();
        break;  // no more threads to be had: fewer do it too
      }
    }
    take(true);
    {
      std::unique_lock<std::mutex> guard(lock_);
      while (!changed_.wait_for(guard, kPatience, [this] { return running_ == 0; })) {
        guard.unlock();
        ask();
        guard.lock();
      }
    }
    for (std::thread& each : others) each.join();
    if (failure_) std::rethrow_exception(failure_);
    if (interrupted_) throw Interrupted();
  }

 private:
  int64_t query_of(int64_t pair) const { return s_.pairs[2 * pair]; }
  int64_t sequence_of(int64_t pair) const { return s_.pairs[2 * pair + 1]; }
  int64_t rows_of(int64_t query) const { return s_.query_offsets[query + 1] - s_.query_offsets[query]; }
  int64_t length_of(int64_t pair) const {
    return s_.offsets[sequence_of(pair) + 1] - s_.offsets[sequence_of(pair)];
  }

  // By query, and by length from long to short, as lanes of a block are. The sequence decides between equal lengths,
  // so that one that is named again is shuffled beside itself.
  void sort_pairs() {
    std::iota(order_.begin(), order_.end(), int64_t{0});
    std::sort(order_.begin(), order_.end(), [this](int64_t a, int64_t b) {
      if (query_of(a) != query_of(b)) return query_of(a) < query_of(b);
      if (length_of(a) != length_of(b)) return length_of(a) > length_of(b);
      return sequence_of(a) != sequence_of(b) ? sequence_of(a) < sequence_of(b) : a < b;
    });
  }

  // Cut each query's copies into blocks; what is empty has its scores at once.
  void cut() {
    const int64_t n = s_.n_pairs;
    for (int64_t begin = 0, end = 0; begin < n; begin = end) {
      const int64_t query = query_of(order_[static_cast<size_t>(begin)]), rows = rows_of(query);
      int64_t filled = begin;
      for (; end < n && query_of(order_[static_cast<size_t>(end)]) == query; ++end) {
        const int64_t pair = order_[static_cast<size_t>(end)], length = length_of(pair);
        if (rows > 0 && length > 0) {
          filled = end + 1;  // the empty ones are the last
        } else {
          std::fill_n(s_.scores + pair * s_.n_copies, s_.n_copies, of_gaps(query, length));
        }
      }
      const int64_t stop = filled * s_.n_copies;
      for (int64_t first = begin * s_.n_copies; first < stop; first += kBlockLanes) {
        items_.push_back(lanes_of(query, first, static_cast<int32_t>(std::min<int64_t>(kBlockLanes, stop - first))));
      }
    }
  }

  // Copies of one query in lanes, up to 64.
  Item lanes_of(int64_t query, int64_t first, int32_t lanes) const {
    int64_t columns = 0;
    for (int32_t lane = 0; lane < lanes; lane += vector_) columns += length_of(pair_of(first + lane));
    return {query, first, lanes, false, columns * rows_of(query)};
  }

  // One copy.
  Item striped_of(int64_t query, int64_t first) const {
    return {query, first, 1, true, length_of(pair_of(first)) * striped_column(rows_of(query), vector_)};
  }

  // Where the longest copies of a query would keep one thread at work when the others have nothing left to do, score
  // them one by one: that is more work, but all threads share it. Scores are the same.
  void share_out() {
    const bool may = s_.way == Way::kChosen && !s_.row_costs && s_.costs.mode != Mode::kShifted && s_.threads > 1;
    int64_t total = 0;
    for (const Item& item : items_) total += item.cost;
    std::make_heap(items_.begin(), items_.end(), costs_less);
    while (may && !items_.empty() && items_.front().cost > total / s_.threads && cut_longest(total)) {
    }
    std::sort_heap(items_.begin(), items_.end(), costs_less);
    std::reverse(items_.begin(), items_.end());
  }

  // Take copies out of the item that costs most, the longest first, until what is left is no more than a thread's
  // share; say whether all threads together then have less to wait for.
  bool cut_longest(int64_t& total) {
    const Item whole = items_.front();
    if (whole.striped) return false;
    std::vector<Item> single;
    int64_t after = total - whole.cost;
    Item rest = whole;
    while (rest.lanes > 0 && rest.cost > after / s_.threads) {
      single.push_back(striped_of(rest.query, rest.first));
      after += single.back().cost;
      rest = lanes_of(rest.query, rest.first + 1, rest.lanes - 1);
    }
    after += rest.cost;
    if (after - total > kMostExtra * whole.cost) return false;
    if (std::max(after / s_.threads, single.front().cost) >= whole.cost) return false;
    std::pop_heap(items_.begin(), items_.end(), costs_less);
    items_.pop_back();
    if (rest.lanes > 0) single.push_back(rest);
    for (const Item& item : single) {
      items_.push_back(item);
      std::push_heap(items_.begin(), items_.end(), costs_less);
    }
    total = after;
    return true;
  }

  int64_t pair_of(int64_t lane) const { return order_[static_cast<size_t>(lane / s_.n_copies)]; }

  // The score of a pair of which one side is empty: in global mode what the gap costs.
  int32_t of_gaps(int64_t query, int64_t length) const {
    const int64_t rows = rows_of(query), n = rows + length;
    int64_t cost = n > 0 ? s_.costs.first + (n - 1) * s_.costs.extend : 0;
    if (rows > 0 && s_.row_costs) {
      const RowCosts* const of_rows = s_.row_costs + s_.query_offsets[query];
      cost = of_rows[0].deletion_first;
      for (int64_t row = 1; row < rows; ++row) cost += of_rows[row].deletion_extend;
    }
    if (s_.costs.mode != Mode::kGlobal) cost = 0;
    if (cost > INT32_MAX) throw std::overflow_error("gap");
    return static_cast<int32_t>(-cost);
  }

  void take(bool asks) {
    try {
      Room room(stop_);
      auto looked = std::chrono::steady_clock::now();
      for (size_t n; !stop_ && (n = next_++) < items_.size();) {
        score(items_[n], room);
        if (asks && std::chrono::steady_clock::now() - looked > kPatience) {
          ask();
          looked = std::chrono::steady_clock::now();
        }
      }
    } catch (...) {
      const std::lock_guard<std::mutex> guard(lock_);
      failure_ = std::current_exception();
      stop_ = true;
    }
  }

  void ended() {
    const std::lock_guard<std::mutex> guard(lock_);
    --running_;
    changed_.notify_one();
  }

  void ask() {
    if (!interrupted_ && s_.asked && s_.asked()) {
      interrupted_ = true;
      stop_ = true;
    }
  }

  void score(const Item& item, Room& room) const {
    int64_t sequences[kBlockLanes];
    int32_t copies[kBlockLanes], lengths[kBlockLanes], scores[kBlockLanes] = {};
    uint8_t saturated[kBlockLanes] = {};
    for (int32_t lane = 0; lane < item.lanes; ++lane) {
      const int64_t pair = pair_of(item.first + lane);
      sequences[lane] = sequence_of(pair);
      copies[lane] = s_.first_copy + static_cast<int32_t>((item.first + lane) % s_.n_copies);
      lengths[lane] = static_cast<int32_t>(length_of(pair));
    }
    const int64_t columns = (lengths[0] + kColumnMultiple - 1) / kColumnMultiple * kColumnMultiple;
    if (room.residues.size() < static_cast<size_t>(columns * kBlockLanes)) {
      room.residues.resize(static_cast<size_t>(columns * kBlockLanes));
    }
    const Shuffle shuffle = {s_.codes, s_.offsets, sequences, copies, item.lanes, nullptr, s_.window, 1, nullptr};
    shuffle_block(shuffle, sequences, copies, item.lanes, columns, room.residues.data(), room.held);
    const int64_t query_offsets[] = {0, rows_of(item.query)}, column_offsets[] = {0, columns};
    Search search;
    search.costs = s_.costs;
    search.query_offsets = query_offsets;
    search.n_queries = 1;
    const QueryRows rows = QueryRows{s_.queries, s_.row_scores, s_.row_costs}.from(s_.query_offsets[item.query]);
    search.codes = rows.codes;
    search.row_scores = rows.scores;
    search.row_costs = rows.costs;
    search.longest_16 = s_.longest_16 + item.query;
    search.residues = room.residues.data();
    search.column_offsets = column_offsets;
    search.n_blocks = 1;
    search.lengths = lengths;
    search.n_subjects = item.lanes;
    search.chosen = nullptr;
    search.n_chosen = 0;
    search.first_bits = s_.first_bits;
    search.last_bits = s_.last_bits;
    search.threads = 1;
    search.way = item.striped ? Way::kStriped : s_.way;
    search.kernels = s_.kernels;
    search.scores = scores;
    search.saturated = saturated;
    room.scorer.run(search);
    if (stop_) return;  // then scores mean nothing
    for (int32_t lane = 0; lane < item.lanes; ++lane) {
      if (saturated[lane]) throw std::overflow_error("score");
      const int64_t place = item.first + lane;
      s_.scores[pair_of(place) * s_.n_copies + place % s_.n_copies] = scores[lane];
    }
  }

  const ScoredCopies& s_;
  const int vector_ = s_.kernels->lanes(s_.costs.mode == Mode::kLocal ? s_.first_bits : 16);  // lanes of a vector
  std::vector<int64_t> order_;  // of pairs
  std::vector<Item> items_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stop_{false};
  bool interrupted_ = false;
  std::mutex lock_;
  std::condition_variable changed_;
  int running_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

void run(const ScoredCopies& asked) { Copies(asked).run(); }

}  // namespace swsearch
