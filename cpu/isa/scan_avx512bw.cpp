// scan_avx512bw: the scan's kernels for x86-64 with AVX-512BW.
#include "search/scan.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq")
#endif

namespace swsearch {
namespace avx512bw {
#define SWSEARCH_NAME "avx512bw"
#include "isa/vector.hpp"
#include "isa/vector_avx512.hpp"
#include "search/scan_kernel.hpp"
#include "search/striped_kernel.hpp"
#include "search/kernel_table.hpp"
}  // namespace avx512bw
}  // namespace swsearch

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace swsearch {
const ScanKernels& avx512bw_scan() { return avx512bw::kScanKernels; }
}  // namespace swsearch
#endif
