// launch.h: a kernel from the arguments of a launch, and the memory of its blocks.
#pragma once

#include <utility>

#include "scheduler.h"

namespace host_cuda {

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
const char* run(void (*kernel)(Arguments...), const Launch& launch) {
  const size_t wanted[] = {sizeof(Arguments)..., 0};
  Call<Arguments...> call{kernel, launch.values};
  return launch_grid(launch, wanted, (int)sizeof...(Arguments), &Call<Arguments...>::body, &call);
}

}  // namespace host_cuda
