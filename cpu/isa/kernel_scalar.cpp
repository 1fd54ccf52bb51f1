// kernel_scalar: the kernels for any processor that the compiler aims at by default; on aarch64 that has NEON.
#include "pairs/tile.hpp"

namespace swsearch {

namespace scalar {
#include "pairs/kernel.hpp"
}  // namespace scalar

const Kernels& scalar_kernels() { return scalar::kKernels; }

const Kernels& kernels_of(Instructions instructions) {
  switch (instructions) {
#if defined(__x86_64__)
    case Instructions::kSse41:
      return sse41_kernels();
    case Instructions::kAvx2:
      return avx2_kernels();
    case Instructions::kAvx512bw:
    case Instructions::kAvx512vbmi:
      return avx512_kernels();
#endif
    default:
      return scalar_kernels();
  }
}

}  // namespace swsearch
