// avx2: the kernels for x86-64 processors with AVX2, chosen when the program runs.
#include "isa/kernels.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

namespace swsearch {
namespace avx2 {
#include "isa/vector.hpp"
#include "isa/vector_x86.hpp"
#include "isa/vector_avx2.hpp"
#include "search/scan_kernel.hpp"
#include "search/striped_kernel.hpp"
#include "search/shift_kernel.hpp"
#include "search/kernel_table.hpp"
#include "pairs/kernel.hpp"
}  // namespace avx2
}  // namespace swsearch

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
