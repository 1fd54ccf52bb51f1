// scan_scalar: the scan's kernels for any processor that the compiler aims at by default.
#include "search/scan.hpp"

namespace swsearch {
namespace scalar {
#define SWSEARCH_NAME "scalar"
#include "isa/vector.hpp"
#include "isa/vector_scalar.hpp"
#include "search/scan_kernel.hpp"
#include "search/striped_kernel.hpp"
#include "search/kernel_table.hpp"
}  // namespace scalar

const ScanKernels& scalar_scan() { return scalar::kScanKernels; }

}  // namespace swsearch
