// kernel_avx2: the kernels for x86-64 processors with AVX2, chosen when the program runs.
#include "pairs/tile.hpp"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

namespace swsearch {
namespace avx2 {
#include "pairs/kernel.hpp"
}  // namespace avx2
}  // namespace swsearch

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace swsearch {
const Kernels& avx2_kernels() { return avx2::kKernels; }
}  // namespace swsearch
#endif
