// avx512bw: the kernels for x86-64 processors with AVX-512 F, BW, DQ and VL, chosen when the program runs.
#include "isa/kernels.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif

namespace swsearch {
namespace avx512bw {
#include "isa/vector.hpp"
#include "isa/vector_x86.hpp"
#include "isa/vector_avx512.hpp"
#include "search/scan_kernel.hpp"
#include "search/striped_kernel.hpp"
#include "search/shift_kernel.hpp"
#include "search/kernel_table.hpp"
#include "pairs/kernel.hpp"
}  // namespace avx512bw
}  // namespace swsearch

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
