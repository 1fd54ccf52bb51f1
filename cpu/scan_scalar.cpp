// scan_scalar: the scan's kernels for any processor that the compiler aims at by default.
#include "scan.hpp"

namespace swsearch {
namespace scalar {
#define SWSEARCH_NAME "scalar"
#include "vector.hpp"
#include "vector_scalar.hpp"
#include "scan_kernel.hpp"
#include "striped_kernel.hpp"
#include "kernel_table.hpp"
}  // namespace scalar

const ScanKernels& scalar_scan() { return scalar::kScanKernels; }

}  // namespace swsearch
