// kernels: which kernels go with which instruction set.
//
// Each set's file, isa/<name>.cpp, defines its tables inside the set's namespace; a set without kernels of its own for
// one of the rooms has one table. Only kernels.cpp and that file name them.
#pragma once

#include "isa/instructions.hpp"
#include "pairs/tile.hpp"
#include "search/scan.hpp"

namespace swsearch {

namespace scalar {
extern const SearchKernels kSearchKernels;
extern const PairKernels kPairKernels;
}  // namespace scalar

namespace sse41 {
extern const SearchKernels kSearchKernels;
extern const PairKernels kPairKernels;
}  // namespace sse41

namespace avx2 {
extern const SearchKernels kSearchKernels;
extern const PairKernels kPairKernels;
}  // namespace avx2

namespace avx512bw {
extern const SearchKernels kSearchKernels;
extern const PairKernels kPairKernels;
}  // namespace avx512bw

namespace avx512vbmi {
extern const SearchKernels kSearchKernels;
}  // namespace avx512vbmi

namespace neon {
extern const SearchKernels kSearchKernels;
}  // namespace neon

// The kernels to be used where an instruction set is available.
const SearchKernels& search_kernels(Instructions instructions);
const PairKernels& pair_kernels(Instructions instructions);

}  // namespace swsearch
