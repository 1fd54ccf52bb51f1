// scheduler.h: the threads of a CUDA grid as coroutines of one host thread.
//
// All blocks of a grid live at the same time, so that one may wait for a flag that another sets. A coroutine runs until
// a warp primitive, a barrier, a poll or an atomic, all of which are scheduling points; what stands between two of them
// is never interrupted. Seed 0 runs warps and lanes in order. Other seeds shuffle both, and let some warps, or
// some lanes of a warp, stand still for a while, so that a protocol that holds by luck alone fails.
#pragma once

#include <cstdint>
#include <cstring>

namespace host_cuda {

constexpr int kLanes = 32;
constexpr size_t kStackBytes = 64 << 10;
constexpr size_t kStaticBytes = 48 << 10;  // of a block's static shared variables, as on a GPU
constexpr size_t kGuardBytes = 256;        // behind dynamic shared memory, to see what is written there
constexpr unsigned char kGarbage = 0xa5;   // what shared memory holds before it is written
constexpr int kPolls = 4;                  // places that a thread may poll by turns without being seen to go on

struct Index3 {
  unsigned x, y, z;
};

enum What { kSyncWarp, kShuffle, kShuffleUp, kShuffleDown, kShuffleXor, kBallot, kAny, kAll };

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
  void* scheduler;  // its stack pointer
};

extern Grid grid;
extern Thread* current;

#if !defined(__x86_64__)
#error "the switch between coroutines is written for x86-64 alone"
#endif

// Save what a called function must keep, go over to another stack and restore it there. swapcontext would do, but
// makes two system calls each time.
extern "C" void host_cuda_switch(void** save, void* load);

inline void suspend() { host_cuda_switch(&current->stack_pointer, grid.scheduler); }

// Give up the launch; does not return.
[[noreturn]] void fail(const char* why, const char* more = "");

// Let others run before a flag is looked at.
inline void poll(const char* what) {
  current->polls = what, current->loops = false;
  suspend();
}

// Say what was seen: the same as in one of the last polls is no progress, but waiting.
void polled(const volatile void* place, long long value);

// The body of an empty loop
inline void idle() {
  current->loops = true;
  suspend();
}

// Bring a lane's value to a primitive of its warp, wait for the other lanes of the mask and return what it gets.
uint64_t warp_operation(What what, unsigned mask, int source, uint64_t value);

// Wait for the threads of the block.
void block_barrier();

// What Python asks for.
struct Launch {
  unsigned blocks, threads;
  void** values;
  const int* sizes;
  int n_values;
  size_t shared_bytes;
  uint64_t seed;
  double seconds;
};

// Run a grid of a body to its end if the arguments have the sizes that its kernel wants; returns what went wrong.
const char* launch_grid(const Launch& launch, const size_t* wanted, int n_wanted, void (*body)(void*), void* call);

}  // namespace host_cuda
