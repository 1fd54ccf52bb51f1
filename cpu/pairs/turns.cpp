// turns: a counter that threads draw from, and one of them that looks for an interrupt.
#include "pairs/turns.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace swsearch {

namespace {

constexpr auto kPatience = std::chrono::milliseconds(50);  // between looks for an interrupt

struct Queue {
  int64_t count;
  std::atomic<int64_t> next{0};
  std::atomic<bool> stop{false}, interrupted{false}, out_of_memory{false};
  std::mutex lock;
  std::condition_variable changed;
  int64_t running = 0;
};

// `ask` is for the turns; `often` between them too.
void work(Queue& queue, const Turn& turn, const AskToStop& ask, bool often) {
  try {
    auto looked = std::chrono::steady_clock::now();
    while (!queue.stop) {
      const int64_t mine = queue.next++;
      if (mine >= queue.count) return;
      turn(mine, ask);
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

void take_turns(int64_t count, int64_t threads, const AskToStop& interrupted, const Turn& turn) {
  Queue queue;
  queue.count = count;
  const AskToStop ask = [&] {
    if (interrupted && interrupted()) {
      queue.interrupted = true;
      queue.stop = true;
    }
    return queue.stop.load();
  };
  const int64_t others_wanted = std::max<int64_t>(std::min(threads, count) - 1, 0);
  std::vector<std::thread> others;
  others.reserve(static_cast<size_t>(others_wanted));
  queue.running = others_wanted;
  int64_t started = 0;
  try {
    for (; started < others_wanted; ++started) {
      others.emplace_back([&] {
        work(queue, turn, [&] { return queue.stop.load(); }, false);
        const std::lock_guard<std::mutex> guard(queue.lock);
        queue.running -= 1;
        queue.changed.notify_one();
      });
    }
  } catch (const std::exception&) {  // system_error, or bad_alloc
    // no more threads to be had: those that there are do it
    const std::lock_guard<std::mutex> guard(queue.lock);
    queue.running -= others_wanted - started;
  }
  work(queue, turn, ask, true);
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
}

}  // namespace swsearch
