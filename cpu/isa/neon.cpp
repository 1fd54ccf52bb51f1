// neon: the kernels of searches for 64-bit Arm, where every processor has these vectors.
//
// Pairs take the kernels of scalar.cpp: what the compiler aims at by default there has these vectors already.
#include "isa/kernels.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace swsearch {
namespace neon {
#include "isa/vector.hpp"
#include "isa/vector_neon.hpp"
#include "search/scan_kernel.hpp"
#include "search/striped_kernel.hpp"
#include "search/shift_kernel.hpp"
#include "search/kernel_table.hpp"
}  // namespace neon
}  // namespace swsearch
#endif
