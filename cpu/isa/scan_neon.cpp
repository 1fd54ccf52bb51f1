// scan_neon: the scan's kernels for 64-bit Arm, all of which have these vectors.
#include "search/scan.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace swsearch {
namespace neon {
#define SWSEARCH_NAME "neon"
#include "isa/vector.hpp"
#include "isa/vector_neon.hpp"
#include "search/scan_kernel.hpp"
#include "search/striped_kernel.hpp"
#include "search/kernel_table.hpp"
}  // namespace neon

const ScanKernels& neon_scan() { return neon::kScanKernels; }

}  // namespace swsearch
#endif
