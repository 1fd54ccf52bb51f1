// avx512vbmi: the kernels of searches for x86-64 processors with AVX-512 VBMI, chosen when the program runs.
//
// Pairs have no use for byte permutes over whole vectors: they take the kernels of avx512bw.cpp.
#include "isa/kernels.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")
#endif

namespace swsearch {
namespace avx512vbmi {
#define SWSEARCH_VBMI
#include "isa/vector.hpp"
#include "isa/vector_x86.hpp"
#include "isa/vector_avx512.hpp"
#include "search/scan_kernel.hpp"
#include "search/striped_kernel.hpp"
#include "search/shift_kernel.hpp"
#include "search/kernel_table.hpp"
}  // namespace avx512vbmi
}  // namespace swsearch

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
