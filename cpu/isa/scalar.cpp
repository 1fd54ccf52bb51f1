// scalar: the kernels for any processor that the compiler aims at by default.
#include "isa/kernels.hpp"

namespace swsearch {
namespace scalar {
#include "isa/vector.hpp"
#include "isa/vector_scalar.hpp"
#include "search/scan_kernel.hpp"
#include "search/striped_kernel.hpp"
#include "search/shift_kernel.hpp"
#include "search/kernel_table.hpp"
#include "pairs/kernel.hpp"
}  // namespace scalar
}  // namespace swsearch
