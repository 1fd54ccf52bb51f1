// kernels: the choice.
#include "isa/kernels.hpp"

namespace swsearch {

const SearchKernels& search_kernels(Instructions instructions) {
  switch (instructions) {
#if defined(__x86_64__)
    case Instructions::kSse41:
      return sse41::kSearchKernels;
    case Instructions::kAvx2:
      return avx2::kSearchKernels;
    case Instructions::kAvx512bw:
      return avx512bw::kSearchKernels;
    case Instructions::kAvx512vbmi:
      return avx512vbmi::kSearchKernels;
#elif defined(__aarch64__)
    case Instructions::kNeon:
      return neon::kSearchKernels;
#endif
    default:
      return scalar::kSearchKernels;
  }
}

const PairKernels& pair_kernels(Instructions instructions) {
  switch (instructions) {
#if defined(__x86_64__)
    case Instructions::kSse41:
      return sse41::kPairKernels;
    case Instructions::kAvx2:
      return avx2::kPairKernels;
    case Instructions::kAvx512bw:
    case Instructions::kAvx512vbmi:
      return avx512bw::kPairKernels;
#endif
    default:
      return scalar::kPairKernels;
  }
}

}  // namespace swsearch
