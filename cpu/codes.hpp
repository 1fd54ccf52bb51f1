// codes: what the kernels of searches and of pairs have in common, and the rule for what any kernel may see.
//
// Kernels see plain data and static functions. Of a template or an inline function, the standard library's too, the
// linker keeps one file's copy for the whole program: if that was compiled for AVX-512, the program ends on other
// processors. tests/engines/cpu/test_objects.py looks for such copies.
#pragma once

#include <cstdint>

namespace swsearch {

constexpr int kCodes = 32;              // codes of a residue, and columns of the score table
constexpr int32_t kNever = -(1 << 30);  // minus infinity of absolute scores

}  // namespace swsearch
