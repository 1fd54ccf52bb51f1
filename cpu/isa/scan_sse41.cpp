// scan_sse41: the scan's kernels for x86-64 with SSE4.1.
#include "search/scan.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("sse4.1"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("sse4.1")
#endif

namespace swsearch {
namespace sse41 {
#define SWSEARCH_NAME "sse41"
#include "isa/vector.hpp"
#include "isa/vector_sse41.hpp"
#include "search/scan_kernel.hpp"
#include "search/striped_kernel.hpp"
#include "search/kernel_table.hpp"
}  // namespace sse41
}  // namespace swsearch

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace swsearch {
const ScanKernels& sse41_scan() { return sse41::kScanKernels; }
}  // namespace swsearch
#endif
