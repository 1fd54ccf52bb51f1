// sse41: the kernels for x86-64 processors with SSE4.1, chosen when the program runs.
#include "isa/kernels.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("sse4.1,ssse3"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("sse4.1,ssse3")
#endif

namespace swsearch {
namespace sse41 {
#include "isa/vector.hpp"
#include "isa/vector_x86.hpp"
#include "isa/vector_sse41.hpp"
#include "search/scan_kernel.hpp"
#include "search/striped_kernel.hpp"
#include "search/shift_kernel.hpp"
#include "search/kernel_table.hpp"
#include "pairs/kernel.hpp"
}  // namespace sse41
}  // namespace swsearch

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
