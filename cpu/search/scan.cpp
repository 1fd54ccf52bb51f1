// scan: which kernels go with which instruction set, and what they call.
#include "search/search.hpp"

namespace swsearch {

bool is_set(const std::atomic<bool>& stop) { return stop.load(std::memory_order_relaxed); }

const ScanKernels& scan_kernels(Instructions instructions) {
  switch (instructions) {
#if defined(__x86_64__)
    case Instructions::kSse41:
      return sse41_scan();
    case Instructions::kAvx2:
      return avx2_scan();
    case Instructions::kAvx512bw:
      return avx512bw_scan();
    case Instructions::kAvx512vbmi:
      return avx512vbmi_scan();
#elif defined(__aarch64__)
    case Instructions::kNeon:
      return neon_scan();
#endif
    default:
      return scalar_scan();
  }
}

}  // namespace swsearch
