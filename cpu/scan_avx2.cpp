// scan_avx2: the scan's kernels for x86-64 with AVX2.
#include "scan.hpp"

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
#define SWSEARCH_NAME "avx2"
#include "vector.hpp"
#include "vector_avx2.hpp"
#include "scan_kernel.hpp"
#include "striped_kernel.hpp"
#include "kernel_table.hpp"
}  // namespace avx2
}  // namespace swsearch

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace swsearch {
const ScanKernels& avx2_scan() { return avx2::kScanKernels; }
}  // namespace swsearch
#endif
