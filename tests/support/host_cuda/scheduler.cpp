// scheduler.cpp: what is the same for all kernels, compiled once: the scheduler of scheduler.h, a grid from its
// arguments to its end, and arithmetic that is too long to stand in every cell.
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scheduler.h"

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

namespace host_cuda {

constexpr int kIdleRounds = 2000;  // rounds in which nothing happens but polling: a deadlock
constexpr int kHeldRounds = 32;    // rounds that a warp, or some of its lanes, may stand still
constexpr int kReportLines = 24;
constexpr uint64_t kStackMark = 0x5afe57ac5afe57acull;

const char* const kNames[] = {"__syncwarp",      "__shfl_sync",   "__shfl_up_sync", "__shfl_down_sync",
                              "__shfl_xor_sync", "__ballot_sync", "__any_sync",     "__all_sync"};

Grid grid;
Thread* current;
static std::string failure;

static Warp& warp_of(const Thread& thread) { return thread.block->warps[thread.warp]; }

static uint64_t random_bits() {
  grid.random ^= grid.random << 13, grid.random ^= grid.random >> 7, grid.random ^= grid.random << 17;
  return grid.random >> 11;
}

void fail(const char* why, const char* more) {
  char where[80];
  std::snprintf(where, sizeof where, "block %u, thread %u: ", current->block->index.x, current->index.x);
  failure = std::string(where) + why + more;
  for (;;) suspend();
}

static void release_barrier(Block& block) {
  if (block.at_barrier == 0 || block.at_barrier < block.live) return;
  for (int i = 0; i < block.n_warps; ++i) {
    Warp& warp = block.warps[i];
    warp.ready |= warp.at_block;
    warp.at_block = 0;
  }
  block.at_barrier = 0;
  ++grid.progress;
}

void polled(const volatile void* place, long long value) {
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

uint64_t warp_operation(What what, unsigned mask, int source, uint64_t value) {
  Thread& thread = *current;
  Warp& warp = warp_of(thread);
  const unsigned bit = 1u << thread.lane;
  if (!(mask & bit)) fail(kNames[what], " with a mask that the calling lane is not in");
  thread.what = what, thread.mask = mask, thread.source = source, thread.value = value;
  warp.ready &= ~bit;
  warp.at_warp |= bit;
  suspend();
  return thread.result;
}

void block_barrier() {
  Warp& warp = warp_of(*current);
  const unsigned bit = 1u << current->lane;
  warp.ready &= ~bit;
  warp.at_block |= bit;
  ++current->block->at_barrier;
  release_barrier(*current->block);
  suspend();
}

// Finish the primitives for which all lanes of the mask have come.
static bool complete(Warp& warp) {
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

static void enter() {
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

static void resume(Thread& thread) {
  current = &thread;
  host_cuda_switch(&grid.scheduler, thread.stack_pointer);
}

static void hold(Warp& warp, unsigned awake, uint64_t round) {
  warp.awake = awake;
  warp.until = round + 1 + random_bits() % kHeldRounds;
}

// Run a warp's lanes to their next scheduling points, and on as long as primitives complete.
static void run(Warp& warp, uint64_t round) {
  if (round >= warp.until) warp.awake = ~0u;
  if (grid.seeded && warp.awake == ~0u && random_bits() % 32 == 0) hold(warp, 0, round);
  const int turns = grid.seeded ? 1 << random_bits() % 8 : 64;
  for (int turn = 0; turn < turns && (warp.ready & warp.awake) != 0 && failure.empty(); ++turn) {
    const unsigned start = grid.seeded ? random_bits() : 0, step = grid.seeded ? random_bits() | 1 : 1;
    for (unsigned k = 0; k < kLanes && failure.empty(); ++k) {
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

static std::string state_of(const Thread& thread) {
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
static std::string report(const std::vector<Thread>& threads) {
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

static std::string schedule(std::vector<Warp>& warps, const std::vector<Thread>& threads, double seconds) {
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
      if (!failure.empty()) return failure;
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

// Run a grid to its end; returns what went wrong, or nothing.
static std::string run_grid(unsigned n_blocks, unsigned n_threads, size_t shared_bytes, uint64_t seed, double seconds,
                            void (*body)(void*), void* arguments) {
  if (n_blocks == 0 || n_threads == 0 || n_threads > 1024 || n_threads % kLanes != 0)
    return "a grid has blocks of 1 to 32 whole warps";
  grid = Grid{{n_blocks, 1, 1}, {n_threads, 1, 1}, shared_bytes, body, arguments,
              seed * 0x9e3779b97f4a7c15ull + 1, seed != 0, 0, nullptr};
  failure.clear();
  const size_t n = (size_t)n_blocks * n_threads, n_warps = n_threads / kLanes;
  void* stacks = mmap(nullptr, n * kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == MAP_FAILED) return "no memory for the stacks of " + std::to_string(n) + " threads";
  std::vector<Thread> threads(n);
  std::vector<Warp> warps(n_blocks * n_warps);
  std::vector<Block> blocks(n_blocks);
  const size_t guard_at = (shared_bytes + 127) / 128 * 128;
  const size_t block_bytes = guard_at + kGuardBytes + kStaticBytes;
  std::unique_ptr<unsigned char, void (*)(void*)> shared(
      static_cast<unsigned char*>(std::aligned_alloc(1024, (n_blocks * block_bytes + 1023) / 1024 * 1024)), std::free);
  std::memset(shared.get(), kGarbage, n_blocks * block_bytes);
  for (unsigned b = 0; b < n_blocks; ++b) {
    blocks[b] = Block{{b, 0, 0}, (int)n_threads, 0, &warps[b * n_warps], (int)n_warps, shared.get() + b * block_bytes};
    for (unsigned t = 0; t < n_threads; ++t) {
      const size_t i = (size_t)b * n_threads + t;
      Thread& thread = threads[i] = Thread{};
      thread.stack = static_cast<char*>(stacks) + i * kStackBytes;
      thread.block = &blocks[b];
      thread.warp = (int)(t / kLanes), thread.lane = (int)(t % kLanes);
      thread.index = {t, 0, 0};
      std::memcpy(thread.stack, &kStackMark, sizeof kStackMark);
      // six registers, the address to return to, and one word more: a called function's stack is 8 off 16 bytes
      void** top = reinterpret_cast<void**>(thread.stack + kStackBytes);
      top[-2] = reinterpret_cast<void*>(&enter);
      thread.stack_pointer = top - 8;
    }
    for (unsigned w = 0; w < n_warps; ++w)
      warps[b * n_warps + w] = Warp{&blocks[b], &threads[(size_t)b * n_threads + w * kLanes], ~0u, 0, 0, ~0u};
  }
  std::string error = schedule(warps, threads, seconds);
  for (const Block& block : blocks)
    for (size_t i = shared_bytes; error.empty() && i < guard_at + kGuardBytes; ++i)
      if (block.shared[i] != kGarbage)
        error = "block " + std::to_string(block.index.x) + " wrote behind its " + std::to_string(shared_bytes) +
                " bytes of shared memory, at byte " + std::to_string(i);
  munmap(stacks, n * kStackBytes);
  return error;
}

const char* launch_grid(const Launch& launch, const size_t* wanted, int n_wanted, void (*body)(void*), void* call) {
  static std::string error;
  error.clear();
  if (launch.n_values != n_wanted)
    error = "the kernel has " + std::to_string(n_wanted) + " arguments, the signature " +
            std::to_string(launch.n_values);
  for (int i = 0; error.empty() && i < n_wanted; ++i)
    if ((size_t)launch.sizes[i] != wanted[i])
      error = "argument " + std::to_string(i) + " has " + std::to_string(wanted[i]) + " bytes, in the signature " +
              std::to_string(launch.sizes[i]);
  if (error.empty())
    error = run_grid(launch.blocks, launch.threads, launch.shared_bytes, launch.seed, launch.seconds, body, call);
  return error.c_str();
}

}  // namespace host_cuda

// half precision of shim.h
double host_cuda_number(unsigned half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double size = exponent == 31  ? (fraction ? NAN : INFINITY)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return half & 0x8000 ? -size : size;
}

unsigned host_cuda_half(double number) {
  const unsigned sign = std::signbit(number) ? 0x8000u : 0u;
  const double size = std::fabs(number);
  if (std::isnan(size)) return 0x7fffu;
  if (size >= 65520) return sign | 0x7c00u;
  int exponent;
  std::frexp(size, &exponent);
  exponent = size == 0 ? -24 : std::max(exponent - 11, -24);  // of the last place
  const int units = (int)std::nearbyint(std::ldexp(size, -exponent));
  return sign | (unsigned)(exponent == -24 ? units : (exponent + 25) * 1024 + units - 1024);
}
