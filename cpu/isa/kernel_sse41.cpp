// kernel_sse41: the kernels for x86-64 processors with SSE4.1, chosen when the program runs.
#include "pairs/tile.hpp"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("sse4.1,ssse3"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("sse4.1,ssse3")
#endif

namespace swsearch {
namespace sse41 {
#include "pairs/kernel.hpp"
}  // namespace sse41
}  // namespace swsearch

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace swsearch {
const Kernels& sse41_kernels() { return sse41::kKernels; }
}  // namespace swsearch
#endif
