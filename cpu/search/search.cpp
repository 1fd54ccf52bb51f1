// search: the work cut into items, threads that take them, and scoring again what saturated.
#include "search/search.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "interruption.hpp"
#include "search/bundle.hpp"

namespace swsearch {

namespace {

constexpr auto kPatience = std::chrono::milliseconds(50);  // between two looks at whether to stop
constexpr int kColumnMultiple = 8;                         // of a block: COLUMN_MULTIPLE of swsearch/blocks.py
constexpr uint8_t kPad = 31;                               // PAD of swsearch/alphabet.py
constexpr int kMostLeaning = 64;                           // of the columns that are computed at a time, in all

// Memory that grows, aligned for any vector; what it held is lost when it does.
class AlignedMemory {
 public:
  void* get(size_t bytes) {
    if (bytes > size_) {
      memory_.reset();
      size_ = 0;
      memory_.reset(static_cast<unsigned char*>(::operator new(bytes, std::align_val_t{64})));
      size_ = bytes;
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(unsigned char* memory) const { ::operator delete(memory, std::align_val_t{64}); }
  };
  std::unique_ptr<unsigned char, Free> memory_;
  size_t size_ = 0;
};

// A bundle against a block of the chunk; or against up to 64 subjects that are packed together first, or one by one.
struct Item {
  enum Kind { kBlock, kPacked, kStriped };
  const OwnedBundle* bundle;
  Kind kind;
  int bits;
  int64_t first;            // place in the chunk, or in `subjects`
  int n_subjects;
  const int64_t* subjects;  // null: the chunk's own
  int64_t cost;             // vector operations, in vectors of rows and columns
};

struct Worker {
  AlignedMemory table, state, boundary, best, found, packed, codes, profile;
  std::vector<std::pair<int, int64_t>> saturated;  // query and subject
  SearchCounts counts;
};

class Job {
 public:
  explicit Job(const Search& search) : s_(search), stop_(own_stop_) {}
  // The calling thread does it alone, and a flag of others ends it.
  Job(const Search& search, Worker& alone, const std::atomic<bool>& stop)
      : s_(search), alone_(&alone), stop_(stop) {}

  SearchCounts run() {
    for (int query = 0; query < s_.n_queries; ++query) {
      const int64_t begin = s_.query_offsets[query];
      const QueryRows all = {s_.codes, s_.row_scores, s_.row_costs};
      queries_.push_back({query, all.from(begin), s_.query_offsets[query + 1] - begin, nullptr});
    }
    if (s_.costs.mode == Mode::kLocal && s_.row_scores && !s_.row_costs) make_leaning();
    if (s_.costs.mode == Mode::kLocal || has_shifts()) {
      run_local();
    } else {
      run_wide();
    }
    return counts_;
  }

 private:
  // Add to all scores by row what a column is kept higher by than the one before it, if they then fit 8 bits and
  // lanes of 8 bits have room.
  void make_leaning() {
    const int64_t begin = s_.query_offsets[0], end = s_.query_offsets[s_.n_queries];
    const int8_t *const first = s_.row_scores + begin * kCodes, *const last = s_.row_scores + end * kCodes;
    const int32_t extend = s_.costs.extend;
    if (extend > kMostLeaning / s_.kernels->columns) return;
    if (*std::max_element(first, last) + extend > INT8_MAX) return;
    leaning_.resize(static_cast<size_t>(last - first));
    std::transform(first, last, leaning_.begin(), [&](int8_t score) { return static_cast<int8_t>(score + extend); });
    for (OwnedBundle::Query& query : queries_) {
      query.leaning = leaning_.data() + (s_.query_offsets[query.place] - begin) * kCodes;
    }
  }

  void run_local() {
    const std::vector<OwnedBundle> bundles = make_bundles(queries_, s_.first_bits);
    for (const OwnedBundle& bundle : bundles) add_items(bundle, s_.first_bits, s_.chosen, s_.n_chosen);
    auto saturated = work();
    counts_cells_ = false;
    for (int bits = 2 * s_.first_bits; bits <= s_.last_bits && !saturated.empty(); bits *= 2) {
      saturated = again(saturated, bits);
    }
    for (const auto& [query, subject] : saturated) s_.saturated[place(query, subject)] = 1;
  }

  // Score (query, subject) pairs, sorted, in wider lanes: each query's subjects packed together.
  std::vector<std::pair<int, int64_t>> again(const std::vector<std::pair<int, int64_t>>& pairs, int bits) {
    std::vector<int64_t> subjects;
    for (const auto& pair : pairs) subjects.push_back(pair.second);
    std::vector<OwnedBundle> bundles;
    bundles.reserve(pairs.size());
    for (size_t begin = 0, end = 0; begin < pairs.size(); begin = end) {
      while (end < pairs.size() && pairs[end].first == pairs[begin].first) ++end;
      bundles.emplace_back(std::vector<OwnedBundle::Query>{queries_[static_cast<size_t>(pairs[begin].first)]}, bits);
      add_items(bundles.back(), bits, subjects.data() + begin, static_cast<int64_t>(end - begin));
    }
    return work();
  }

  // Global and semi-global mode: the lengths say beforehand which lanes are wide enough.
  void run_wide() {
    std::vector<OwnedBundle::Query> ascending = queries_;
    std::stable_sort(ascending.begin(), ascending.end(), [&](const auto& a, const auto& b) {
      return s_.longest_16[a.place] < s_.longest_16[b.place];  // those of a bundle are alike
    });
    const std::vector<OwnedBundle> narrow = make_bundles(ascending, 16), wide = make_bundles(ascending, 32);
    for (const auto* bundles : {&wide, &narrow}) {
      const bool is_wide = bundles == &wide;
      for (size_t k = 0; k < bundles->size(); ++k) {
        const OwnedBundle& bundle = (*bundles)[k];
        add_items(bundle, is_wide ? 32 : 16, s_.chosen, s_.n_chosen, s_.longest_16[bundle.queries().front().place]);
      }
    }
    work();
  }

  int64_t place(int query, int64_t subject) const {
    if (!s_.chosen) return query * s_.n_subjects + subject;
    return query * s_.n_chosen + (std::lower_bound(s_.chosen, s_.chosen + s_.n_chosen, subject) - s_.chosen);
  }

  // Add a bundle's items against all subjects, or against some. With `longest_16`, only of blocks whose first subject
  // is at most that long (16 bits), or longer (32 bits).
  void add_items(const OwnedBundle& bundle, int bits, const int64_t* subjects, int64_t n_subjects,
                 int64_t longest_16 = -1) {
    const int64_t n = subjects ? n_subjects : s_.n_subjects;
    for (int64_t first = 0; first < n; first += kBlockLanes) {
      Item item = {&bundle, subjects ? Item::kPacked : Item::kBlock, bits, first,
                   static_cast<int>(std::min<int64_t>(kBlockLanes, n - first)), subjects, 0};
      while (item.n_subjects > 0 && length_of(item, item.n_subjects - 1) == 0) --item.n_subjects;
      if (item.n_subjects == 0) break;  // an engine scores empty subjects itself
      if (longest_16 >= 0 && (length_of(item, 0) <= longest_16) != (bits == 16)) continue;
      add_item(item);
    }
  }

  // Add an item, or items for its longest subjects one by one where that is less work, and one for the others.
  void add_item(Item item) {
    const int lanes = s_.kernels->lanes(item.bits);
    const Way way = s_.row_costs || has_shifts() ? Way::kLanes : s_.way;
    int64_t column = 0;
    for (const auto& query : item.bundle->queries()) column += striped_column(query.rows, lanes);
    const auto scan_cost = [&](int from) {
      int64_t columns = 0;
      for (int k = from; k < item.n_subjects; k += lanes) columns += length_of(item, k);
      return columns * item.bundle->rows();
    };
    int n_striped = 0;
    int64_t striped = 0, least = way == Way::kStriped ? INT64_MAX : scan_cost(0);
    for (int k = 0; k < item.n_subjects && way != Way::kLanes; ++k) {
      striped += length_of(item, k) * column;
      const int64_t cost = striped + scan_cost(k + 1);
      if (cost < least || way == Way::kStriped) {
        least = cost;
        n_striped = k + 1;
      }
    }
    for (int k = 0; k < n_striped; ++k) {
      const int64_t cost = length_of(item, k) * column;
      items_.push_back({item.bundle, Item::kStriped, item.bits, item.first + k, 1, item.subjects, cost});
    }
    if (n_striped == item.n_subjects) return;
    item.first += n_striped;
    item.n_subjects -= n_striped;
    if (n_striped > 0) item.kind = Item::kPacked;  // so that those left fill vectors from the first lane on
    item.cost = scan_cost(0);
    items_.push_back(item);
  }

  bool has_shifts() const { return s_.costs.mode == Mode::kShifted; }

  int64_t subject_of(const Item& item, int k) const {
    return item.subjects ? item.subjects[item.first + k] : item.first + k;
  }
  int64_t length_of(const Item& item, int k) const { return s_.lengths[subject_of(item, k)]; }

  std::vector<std::pair<int, int64_t>> work() {
    if (alone_ != nullptr) return work_in(*alone_);
    std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) { return a.cost > b.cost; });
    const size_t n_workers = std::min<size_t>(static_cast<size_t>(s_.threads), items_.size());
    std::vector<Worker> workers(n_workers);
    std::vector<std::thread> threads;
    threads.reserve(n_workers);  // what throws below leaves no thread behind
    next_ = 0;
    running_ = 0;
    for (Worker& worker : workers) {
      {
        const std::lock_guard<std::mutex> guard(lock_);
        ++running_;
      }
      try {
        threads.emplace_back([this, &worker] { take_items(worker); });
      } catch (const std::exception&) {  // system_error, or bad_alloc
        if (threads.empty()) {
          work_alone(worker);
        } else {
          stopped_working();
        }
        break;  // no more threads to be had: those that there are do it
      }
    }
    wait();
    for (std::thread& thread : threads) thread.join();
    items_.clear();
    if (failure_) std::rethrow_exception(failure_);
    if (interrupted_) throw Interrupted();
    std::vector<std::pair<int, int64_t>> saturated;
    for (Worker& worker : workers) gather(worker, saturated);
    std::sort(saturated.begin(), saturated.end());
    return saturated;
  }

  std::vector<std::pair<int, int64_t>> work_in(Worker& worker) {
    for (const Item& item : items_) {
      if (stop_) break;
      do_item(item, worker);
    }
    items_.clear();
    std::vector<std::pair<int, int64_t>> saturated;
    gather(worker, saturated);
    std::sort(saturated.begin(), saturated.end());
    return saturated;
  }

  // Take what a worker found over, and leave nothing of it.
  void gather(Worker& worker, std::vector<std::pair<int, int64_t>>& saturated) {
    saturated.insert(saturated.end(), worker.saturated.begin(), worker.saturated.end());
    for (int k = 0; k < 3; ++k) counts_.pairs[k] += worker.counts.pairs[k];
    worker.saturated.clear();
    worker.counts = {};
  }

  // Until all threads have ended: ask now and then whether to stop.
  void wait() {
    std::unique_lock<std::mutex> guard(lock_);
    for (;;) {
      const bool ended = changed_.wait_for(guard, kPatience, [this] { return running_ == 0; });
      guard.unlock();
      ask();
      guard.lock();
      if (ended) return;
    }
  }

  // Only the thread that called may ask.
  void ask() {
    const int64_t done = cells_.exchange(0);
    if (!interrupted_ && s_.stop(done)) {
      interrupted_ = true;
      own_stop_ = true;
    }
  }

  // Where not even one thread is to be had: it takes longer until an interruption is heard.
  void work_alone(Worker& worker) {
    take_items(worker, [this] { ask(); });
  }

  void take_items(Worker& worker) {
    take_items(worker, [] {});
  }

  template <class AfterEach>
  void take_items(Worker& worker, AfterEach&& after_each) {
    try {
      for (size_t n; !stop_ && (n = next_++) < items_.size();) {
        do_item(items_[n], worker);
        after_each();
      }
    } catch (...) {
      const std::lock_guard<std::mutex> guard(lock_);
      failure_ = std::current_exception();
      own_stop_ = true;
    }
    stopped_working();
  }

  void stopped_working() {
    const std::lock_guard<std::mutex> guard(lock_);
    --running_;
    changed_.notify_one();
  }

  void do_item(const Item& item, Worker& worker) {
    if (item.kind == Item::kStriped) {
      stripe(item, worker);
    } else {
      scan(item, worker);
    }
    if (!counts_cells_ || stop_) return;
    int64_t residues = 0;
    for (int k = 0; k < item.n_subjects; ++k) residues += length_of(item, k);
    cells_ += item.bundle->rows() * residues;
  }

  void scan(const Item& item, Worker& worker) {
    const OwnedBundle& bundle = *item.bundle;
    int32_t lengths[kBlockLanes];
    for (int lane = 0; lane < item.n_subjects; ++lane) lengths[lane] = static_cast<int32_t>(length_of(item, lane));
    const uint8_t* const columns = item.kind == Item::kPacked
                                       ? pack(item, worker)
                                       : s_.residues + s_.column_offsets[item.first / kBlockLanes] * kBlockLanes;
    const size_t lane_bytes = static_cast<size_t>(item.bits / 8), row_bytes = 2 * kBlockLanes * lane_bytes;
    ScanMemory memory;
    memory.table = worker.table.get(scan_table_lanes(s_.kernels->columns) * lane_bytes);
    memory.state = worker.state.get(static_cast<size_t>(bundle.most_rows()) * row_bytes);
    memory.best = worker.best.get(static_cast<size_t>(bundle.most_pieces()) * kBlockLanes * lane_bytes);
    const size_t passed = (has_shifts() ? kShiftBoundary : 2) * kBlockLanes * lane_bytes;
    memory.boundary = bundle.view().n_strips > 1 ? worker.boundary.get(rounded(lengths[0]) * passed) : nullptr;
    memory.found = static_cast<LaneScore*>(worker.found.get(bundle.queries().size() * kBlockLanes * sizeof(LaneScore)));
    const ScanKernel kernel = s_.kernels->of(s_.costs.mode, item.bits);
    kernel(s_.costs, bundle.view(), {columns, lengths, item.n_subjects}, memory, stop_);
    const LaneScore* found = memory.found;
    for (const OwnedBundle::Query& query : bundle.queries()) {
      for (int lane = 0; lane < item.n_subjects; ++lane) take(item, worker, query.place, lane, found[lane]);
      found += kBlockLanes;
    }
  }

  void stripe(const Item& item, Worker& worker) {
    const int64_t subject = subject_of(item, 0);
    const int length = s_.lengths[subject];
    uint8_t* const residues = static_cast<uint8_t*>(worker.packed.get(static_cast<size_t>(length)));
    copy_residues(subject, residues, 1);
    for (const OwnedBundle::Query& query : item.bundle->queries()) {
      const int rows = static_cast<int>(query.rows);
      const size_t lanes = striped_lanes(rows, s_.kernels->lanes(item.bits));
      const size_t bytes = lanes * static_cast<size_t>(item.bits / 8);
      const StripedMemory memory = {lanes, static_cast<uint8_t*>(worker.codes.get(lanes)),
                                    worker.profile.get(kCodes * bytes), worker.state.get(2 * bytes)};
      const StripedKernel kernel = s_.kernels->striped(s_.costs.mode, item.bits);
      take(item, worker, query.place, 0, kernel(s_.costs, query.at, rows, residues, length, memory, stop_));
    }
  }

  void take(const Item& item, Worker& worker, int query, int k, const LaneScore& found) {
    const int64_t subject = subject_of(item, k);
    worker.counts.pairs[SearchKernels::place_of(item.bits)] += 1;
    if (found.saturated) {
      worker.saturated.emplace_back(query, subject);
    } else {
      s_.scores[place(query, subject)] = found.score;
    }
  }

  // Interleave an item's subjects.
  const uint8_t* pack(const Item& item, Worker& worker) const {
    const size_t bytes = rounded(length_of(item, 0)) * kBlockLanes;
    uint8_t* const out = static_cast<uint8_t*>(worker.packed.get(bytes));
    std::fill_n(out, bytes, kPad);
    for (int lane = 0; lane < item.n_subjects; ++lane) copy_residues(subject_of(item, lane), out + lane, kBlockLanes);
    return out;
  }

  void copy_residues(int64_t subject, uint8_t* out, int64_t step) const {
    const int64_t begin = s_.column_offsets[subject / kBlockLanes] * kBlockLanes + subject % kBlockLanes;
    const uint8_t* const from = s_.residues + begin;
    for (int64_t k = 0; k < s_.lengths[subject]; ++k) out[k * step] = from[k * kBlockLanes];
  }

  static size_t rounded(int64_t columns) {
    return static_cast<size_t>((columns + kColumnMultiple - 1) / kColumnMultiple * kColumnMultiple);
  }

  const Search& s_;
  std::vector<OwnedBundle::Query> queries_;
  std::vector<int8_t> leaning_;  // scores
  std::vector<Item> items_;
  std::atomic<size_t> next_{0};
  std::atomic<int64_t> cells_{0};
  bool counts_cells_ = true;  // not those that are computed again
  Worker* const alone_ = nullptr;  // who works where no threads are to be started
  std::atomic<bool> own_stop_{false};
  const std::atomic<bool>& stop_;
  bool interrupted_ = false;
  std::mutex lock_;
  std::condition_variable changed_;
  int running_ = 0;
  std::exception_ptr failure_;
  SearchCounts counts_;
};

}  // namespace

bool is_set(const std::atomic<bool>& stop) { return stop.load(std::memory_order_relaxed); }

SearchCounts run(const Search& search) { return Job(search).run(); }

struct Scorer::Memory {
  Worker worker;
};

Scorer::Scorer(const std::atomic<bool>& stop) : stop_(stop), memory_(std::make_unique<Memory>()) {}

Scorer::~Scorer() = default;

SearchCounts Scorer::run(const Search& search) { return Job(search, memory_->worker, stop_).run(); }

}  // namespace swsearch
