// launch.h: a grid from its arguments to its end, and the memory of its blocks.
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <memory>

#include "scheduler.h"

namespace host_cuda {

// Run a grid to its end; returns what went wrong, or nothing.
inline std::string run_grid(unsigned n_blocks, unsigned n_threads, size_t shared_bytes, uint64_t seed, double seconds,
                            void (*body)(void*), void* arguments) {
  if (n_blocks == 0 || n_threads == 0 || n_threads > 1024 || n_threads % kLanes != 0)
    return "a grid has blocks of 1 to 32 whole warps";
  grid = Grid{{n_blocks, 1, 1}, {n_threads, 1, 1}, shared_bytes, body, arguments,
              seed * 0x9e3779b97f4a7c15ull + 1, seed != 0, 0, "", nullptr};
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

// Memory of the running block. rewrite() in tests/support/host_cuda.py makes calls of these out of __shared__ declarations.
template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(current->block->shared);
}

inline size_t static_end = 0;

inline size_t reserve_static(size_t bytes) {
  const size_t at = static_end;
  static_end += (bytes + 15) / 16 * 16;
  if (static_end > kStaticBytes) fail("more than 48 KiB of static shared variables");
  return at;
}

template <class T, int kNumber>
T& static_shared() {
  static const size_t at = reserve_static(sizeof(T));
  const size_t dynamic = (grid.shared_bytes + 127) / 128 * 128 + kGuardBytes;
  return *reinterpret_cast<T*>(current->block->shared + dynamic + at);
}

// Call a kernel with arguments as cuLaunchKernel takes them: the address of each.
template <class... Arguments>
struct Call {
  void (*kernel)(Arguments...);
  void** values;
  template <size_t... kIndex>
  void apply(std::index_sequence<kIndex...>) {
    kernel(*static_cast<std::remove_reference_t<Arguments>*>(values[kIndex])...);
  }
  static void body(void* self) {
    static_cast<Call*>(self)->apply(std::index_sequence_for<Arguments...>{});
  }
};

template <class... Arguments>
const char* launch(void (*kernel)(Arguments...), unsigned blocks, unsigned threads, void** values, const int* sizes,
                   int n_values, size_t shared_bytes, uint64_t seed, double seconds) {
  static std::string error;
  const size_t wanted[] = {sizeof(Arguments)..., 0};
  error.clear();
  if (n_values != (int)sizeof...(Arguments))
    error = "the kernel has " + std::to_string(sizeof...(Arguments)) + " arguments, the signature " +
            std::to_string(n_values);
  for (int i = 0; error.empty() && i < n_values; ++i)
    if ((size_t)sizes[i] != wanted[i])
      error = "argument " + std::to_string(i) + " has " + std::to_string(wanted[i]) + " bytes, in the signature " +
              std::to_string(sizes[i]);
  Call<Arguments...> call{kernel, values};
  if (error.empty()) error = run_grid(blocks, threads, shared_bytes, seed, seconds, &Call<Arguments...>::body, &call);
  return error.c_str();
}

}  // namespace host_cuda
