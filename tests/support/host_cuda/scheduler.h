// scheduler.h: the threads of a CUDA grid as coroutines of one host thread.
//
// All blocks of a grid live at the same time, so that one may wait for a flag that another sets. A coroutine runs until
// a warp primitive, a barrier, a poll or an atomic, all of which are scheduling points; what stands between two of them
// is never interrupted. Seed 0 runs warps and lanes in order. Other seeds shuffle both, and let some warps, or
// some lanes of a warp, stand still for a while, so that a protocol that holds by luck alone fails.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

namespace host_cuda {

constexpr int kLanes = 32;
constexpr size_t kStackBytes = 64 << 10;
constexpr size_t kStaticBytes = 48 << 10;  // of a block's static shared variables, as on a GPU
constexpr size_t kGuardBytes = 256;        // behind dynamic shared memory, to see what is written there
constexpr unsigned char kGarbage = 0xa5;   // what shared memory holds before it is written
constexpr int kIdleRounds = 2000;          // rounds in which nothing happens but polling: a deadlock
constexpr int kHeldRounds = 32;            // rounds that a warp, or some of its lanes, may stand still
constexpr int kPolls = 4;                  // places that a thread may poll by turns without being seen to go on
constexpr int kReportLines = 24;
constexpr uint64_t kStackMark = 0x5afe57ac5afe57acull;

struct Index3 {
  unsigned x, y, z;
};

enum What { kSyncWarp, kShuffle, kShuffleUp, kShuffleDown, kShuffleXor, kBallot, kAny, kAll };
inline const char* const kNames[] = {"__syncwarp",       "__shfl_sync",     "__shfl_up_sync", "__shfl_down_sync",
                                     "__shfl_xor_sync", "__ballot_sync", "__any_sync",     "__all_sync"};

struct Block;

struct Polled {
  const volatile void* place;
  long long value;
};

struct Thread {
  void* stack_pointer;
  char* stack;
  Block* block;
  int warp, lane;
  Index3 index;
  // what it brings to a warp primitive, and gets
  What what;
  unsigned mask;
  int source;
  uint64_t value, result;
  // what it polled, the newest at `last`; loops: in an empty loop since then
  const char* polls;
  Polled recent[kPolls];
  int last;
  bool loops;
};

struct Warp {
  Block* block;
  Thread* threads;
  unsigned ready, at_warp, at_block;  // lanes; those in none have returned
  unsigned awake;  // lanes that the schedule lets run,
  uint64_t until;  // up to this round
};

struct Block {
  Index3 index;
  int live, at_barrier;
  Warp* warps;
  int n_warps;
  unsigned char* shared;  // dynamic, then the guard, then static
};

struct Grid {
  Index3 blocks, threads;
  size_t shared_bytes;
  void (*body)(void*);  // the kernel with its arguments
  void* arguments;
  uint64_t random;
  bool seeded;
  uint64_t progress;
  std::string failure;
  void* scheduler;  // its stack pointer
};

inline Grid grid;
inline Thread* current;

#if !defined(__x86_64__)
#error "the switch between coroutines is written for x86-64 alone"
#endif

// Save what a called function must keep, go over to another stack and restore it there. swapcontext would do, but
// makes two system calls each time.
extern "C" __attribute__((visibility("hidden"))) void host_cuda_switch(void** save, void* load);
asm(R"(
.text
.hidden host_cuda_switch
.globl host_cuda_switch
.type host_cuda_switch, @function
host_cuda_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size host_cuda_switch, .-host_cuda_switch
)");

inline void suspend() { host_cuda_switch(&current->stack_pointer, grid.scheduler); }

inline Warp& warp_of(const Thread& thread) { return thread.block->warps[thread.warp]; }

inline uint64_t random_bits() {
  grid.random ^= grid.random << 13, grid.random ^= grid.random >> 7, grid.random ^= grid.random << 17;
  return grid.random >> 11;
}

// Give up the launch; does not return.
[[noreturn]] inline void fail(const std::string& why) {
  char where[80];
  std::snprintf(where, sizeof where, "block %u, thread %u: ", current->block->index.x, current->index.x);
  grid.failure = where + why;
  for (;;) suspend();
}

// Let others run before a flag is looked at.
inline void poll(const char* what) {
  current->polls = what, current->loops = false;
  suspend();
}

// Say what was seen: the same as in one of the last polls is no progress, but waiting.
inline void polled(const volatile void* place, long long value) {
  Thread& thread = *current;
  for (const Polled& recent : thread.recent)
    if (recent.place == place && recent.value == value) {
      thread.last = &recent - thread.recent;
      return;
    }
  thread.last = (thread.last + 1) % kPolls;
  thread.recent[thread.last] = {place, value};
  ++grid.progress;
}

// The body of an empty loop
inline void idle() {
  current->loops = true;
  suspend();
}

inline uint64_t warp_operation(What what, unsigned mask, int source, uint64_t value) {
  Thread& thread = *current;
  Warp& warp = warp_of(thread);
  const unsigned bit = 1u << thread.lane;
  if (!(mask & bit)) fail(std::string(kNames[what]) + " with a mask that the calling lane is not in");
  thread.what = what, thread.mask = mask, thread.source = source, thread.value = value;
  warp.ready &= ~bit;
  warp.at_warp |= bit;
  suspend();
  return thread.result;
}

inline void release_barrier(Block& block) {
  if (block.at_barrier == 0 || block.at_barrier < block.live) return;
  for (int i = 0; i < block.n_warps; ++i) {
    Warp& warp = block.warps[i];
    warp.ready |= warp.at_block;
    warp.at_block = 0;
  }
  block.at_barrier = 0;
  ++grid.progress;
}

inline void block_barrier() {
  Warp& warp = warp_of(*current);
  const unsigned bit = 1u << current->lane;
  warp.ready &= ~bit;
  warp.at_block |= bit;
  ++current->block->at_barrier;
  release_barrier(*current->block);
  suspend();
}

// Finish the primitives for which all lanes of the mask have come.
inline bool complete(Warp& warp) {
  bool any = false;
  for (unsigned left = warp.at_warp; left != 0;) {
    const Thread& first = warp.threads[__builtin_ctz(left)];
    const unsigned mask = first.mask;
    bool whole = (warp.at_warp & mask) == mask;
    uint64_t votes = 0;
    for (unsigned m = mask; whole && m != 0; m &= m - 1) {
      const Thread& thread = warp.threads[__builtin_ctz(m)];
      whole = thread.what == first.what && thread.mask == mask;
      votes |= (uint64_t)(thread.value != 0) << thread.lane;
    }
    left &= whole ? ~mask : left - 1;
    if (!whole) continue;
    const bool shuffles = first.what >= kShuffle && first.what <= kShuffleXor;
    for (unsigned m = mask; m != 0; m &= m - 1) {
      Thread& thread = warp.threads[__builtin_ctz(m)];
      if (!shuffles) thread.result = votes;
      else if (mask >> thread.source & 1) thread.result = warp.threads[thread.source].value;
      else thread.result = 0xdeadbeefdeadbeefull;  // CUDA leaves open what comes from a lane that takes no part
    }
    warp.at_warp &= ~mask;
    warp.ready |= mask;
    ++grid.progress;
    any = true;
  }
  return any;
}

inline void enter() {
  grid.body(grid.arguments);
  Thread& thread = *current;
  uint64_t mark;
  std::memcpy(&mark, thread.stack, sizeof mark);
  if (mark != kStackMark) fail("the stack of 64 KiB is too small");
  warp_of(thread).ready &= ~(1u << thread.lane);
  --thread.block->live;
  release_barrier(*thread.block);
  ++grid.progress;
  for (;;) suspend();
}

inline void resume(Thread& thread) {
  current = &thread;
  host_cuda_switch(&grid.scheduler, thread.stack_pointer);
}

inline void hold(Warp& warp, unsigned awake, uint64_t round) {
  warp.awake = awake;
  warp.until = round + 1 + random_bits() % kHeldRounds;
}

// Run a warp's lanes to their next scheduling points, and on as long as primitives complete.
inline void run(Warp& warp, uint64_t round) {
  if (round >= warp.until) warp.awake = ~0u;
  if (grid.seeded && warp.awake == ~0u && random_bits() % 32 == 0) hold(warp, 0, round);
  const int turns = grid.seeded ? 1 << random_bits() % 8 : 64;
  for (int turn = 0; turn < turns && (warp.ready & warp.awake) != 0 && grid.failure.empty(); ++turn) {
    const unsigned start = grid.seeded ? random_bits() : 0, step = grid.seeded ? random_bits() | 1 : 1;
    for (unsigned k = 0; k < kLanes && grid.failure.empty(); ++k) {
      const unsigned lane = (start + k * step) % kLanes;
      if ((warp.ready & warp.awake) >> lane & 1) resume(warp.threads[lane]);
    }
    if (!complete(warp)) break;
    // between two primitives lanes need not keep step: let some fall behind while other warps run
    if (grid.seeded && random_bits() % 16 == 0) {
      hold(warp, (unsigned)random_bits(), round);
      break;
    }
  }
}

inline std::string state_of(const Thread& thread) {
  const Warp& warp = warp_of(thread);
  const unsigned bit = 1u << thread.lane;
  char text[160];
  if (warp.at_block & bit) return "waits at __syncthreads";
  if (warp.at_warp & bit) {
    unsigned absent = 0;
    for (unsigned m = thread.mask & warp.at_warp; m != 0; m &= m - 1) {
      const Thread& other = warp.threads[__builtin_ctz(m)];
      if (other.what == thread.what && other.mask == thread.mask) absent |= 1u << other.lane;
    }
    absent = thread.mask & ~absent;
    std::snprintf(text, sizeof text, "waits in %s (mask %08x) for lanes %08x", kNames[thread.what], thread.mask, absent);
    return text;
  }
  if (!(warp.ready & bit)) return "has returned";
  const std::string loops = thread.loops ? "goes round an empty loop" : "";
  if (thread.polls == nullptr) return thread.loops ? loops : "polls nothing";
  const Polled& seen = thread.recent[thread.last];
  std::snprintf(text, sizeof text, "polls in %s, %p, where it saw %lld", thread.polls,
                const_cast<const void*>(seen.place), seen.value);
  return thread.loops ? loops + "; last " + text : text;
}

// Say what every thread waits for, neighbours with the same answer in one line.
inline std::string report(const std::vector<Thread>& threads) {
  std::string text;
  const size_t per_block = grid.threads.x;
  int lines = 0;
  for (size_t i = 0; i < threads.size();) {
    const std::string state = state_of(threads[i]);
    size_t end = i + 1;
    while (end < threads.size() && end % per_block != 0 && state_of(threads[end]) == state) ++end;
    if (lines++ < kReportLines) {
      text += "\n  block " + std::to_string(i / per_block) + ", threads " + std::to_string(i % per_block) + " to " +
              std::to_string((end - 1) % per_block) + ": " + state;
    }
    i = end;
  }
  if (lines > kReportLines) text += "\n  ... and " + std::to_string(lines - kReportLines) + " lines more";
  return text;
}

inline std::string schedule(std::vector<Warp>& warps, const std::vector<Thread>& threads, double seconds) {
  std::vector<Warp*> order;
  for (Warp& warp : warps) order.push_back(&warp);
  const std::clock_t begin = std::clock();
  uint64_t seen = 0;
  int idle = 0;
  for (uint64_t round = 0; !order.empty(); ++round) {
    if (grid.seeded)
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_bits() % i]);
    size_t kept = 0;
    for (Warp* warp : order) {
      run(*warp, round);
      if (!grid.failure.empty()) return grid.failure;
      if ((warp->ready | warp->at_warp | warp->at_block) != 0) order[kept++] = warp;
    }
    order.resize(kept);
    idle = grid.progress == seen ? idle + 1 : 0;
    seen = grid.progress;
    if (idle > kIdleRounds) return "deadlock: nobody can go on" + report(threads);
    if (round % 256 == 255 && (double)(std::clock() - begin) / CLOCKS_PER_SEC > seconds)
      return "no end after " + std::to_string((int)seconds) + " s" + report(threads);
  }
  return "";
}

}  // namespace host_cuda
