// kernel_avx512: the kernels for x86-64 processors with AVX-512, chosen when the program runs.
#include "pairs/tile.hpp"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif

namespace swsearch {
namespace avx512 {
#include "pairs/kernel.hpp"
}  // namespace avx512
}  // namespace swsearch

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace swsearch {
const Kernels& avx512_kernels() { return avx512::kKernels; }
}  // namespace swsearch
#endif
