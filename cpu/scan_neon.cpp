// scan_neon: the scan's kernels for 64-bit Arm, all of which have these vectors.
#include "scan.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace swsearch {
namespace neon {
#define SWSEARCH_NAME "neon"
#include "vector.hpp"
#include "vector_neon.hpp"
#include "scan_kernel.hpp"
#include "striped_kernel.hpp"
#include "kernel_table.hpp"
}  // namespace neon

const ScanKernels& neon_scan() { return neon::kScanKernels; }

}  // namespace swsearch
#endif
