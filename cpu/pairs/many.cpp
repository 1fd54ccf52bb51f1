// many: a queue of pairs, the largest first.
#include "pairs/many.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <new>
#include <numeric>
#include <thread>

namespace swsearch {

namespace {

constexpr auto kPatience = std::chrono::milliseconds(50);  // between looks for an interrupt

struct Queue {
  explicit Queue(const Many& many) : order(static_cast<size_t>(many.count)) {
    std::iota(order.begin(), order.end(), int64_t{0});
    const auto cells = [&](int64_t pair) { return many.places[4 * pair + 1] * many.places[4 * pair + 3]; };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return cells(a) > cells(b); });
  }
  std::vector<int64_t> order;
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false}, interrupted{false}, out_of_memory{false};
  std::mutex lock;
  std::condition_variable changed;
  int running = 0;
};

Outcome align_one(const Many& many, const Settings& settings, int64_t pair) {
  const int64_t* place = many.places + 4 * pair;
  Problem problem = many.costs;
  problem.query = many.queries + place[0];
  problem.m = place[1];
  problem.subject = many.subjects + place[2];
  problem.n = place[3];
  Outcome outcome;
  try {
    prepare(problem);
    outcome.aligned = align(problem, settings, many.with_path, many.known ? many.known[pair] : INT64_MIN);
  } catch (const MemoryNeeded& error) {
    outcome.needed = error.bytes;
  }
  return outcome;
}

// `ask` is asked now and then; `often` between pairs too.
void work(const Many& many, Queue& queue, std::vector<Outcome>& outcomes, const AskToStop& ask, bool often) {
  try {
    Settings settings = many.settings;
    settings.threads = 1;
    settings.interrupted = ask;
    auto looked = std::chrono::steady_clock::now();
    while (!queue.stop) {
      const size_t turn = queue.next++;
      if (turn >= queue.order.size()) return;
      const int64_t pair = queue.order[turn];
      outcomes[static_cast<size_t>(pair)] = align_one(many, settings, pair);
      if (often && std::chrono::steady_clock::now() - looked > kPatience) {
        if (ask()) return;
        looked = std::chrono::steady_clock::now();
      }
    }
  } catch (const Interrupted&) {
    queue.stop = true;
  } catch (const std::bad_alloc&) {
    queue.out_of_memory = true;
    queue.stop = true;
  }
}

}  // namespace

std::vector<Outcome> align_many(const Many& many) {
  std::vector<Outcome> outcomes(static_cast<size_t>(many.count));
  Queue queue(many);
  const AskToStop ask = [&] {
    if (many.settings.interrupted && many.settings.interrupted()) {
      queue.interrupted = true;
      queue.stop = true;
    }
    return queue.stop.load();
  };
  const int64_t threads = std::min<int64_t>(many.settings.threads, many.count);
  std::vector<std::thread> others;
  others.reserve(static_cast<size_t>(std::max<int64_t>(threads - 1, 0)));
  queue.running = static_cast<int>(std::max<int64_t>(threads - 1, 0));
  int started = 0;
  try {
    for (int64_t k = 1; k < threads; ++k) {
      others.emplace_back([&] {
        work(many, queue, outcomes, [&] { return queue.stop.load(); }, false);
        const std::lock_guard<std::mutex> guard(queue.lock);
        queue.running -= 1;
        queue.changed.notify_one();
      });
      ++started;
    }
  } catch (const std::exception&) {  // system_error, or bad_alloc
    // no more threads to be had: those that there are do it
    const std::lock_guard<std::mutex> guard(queue.lock);
    queue.running -= static_cast<int>(threads - 1) - started;
  }
  work(many, queue, outcomes, ask, true);
  {
    std::unique_lock<std::mutex> guard(queue.lock);
    while (!queue.changed.wait_for(guard, kPatience, [&] { return queue.running == 0; })) {
      guard.unlock();
      if (!queue.stop) ask();
      guard.lock();
    }
  }
  for (auto& other : others) other.join();
  if (queue.interrupted) throw Interrupted();
  if (queue.out_of_memory) throw std::bad_alloc();
  return outcomes;
}

}  // namespace swsearch
