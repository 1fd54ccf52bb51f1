// instructions: the instruction sets that kernels are compiled for, and which of them this processor has.
//
// A kernel that has no version of its own for a set takes that of the next narrower one.
#pragma once

#include <vector>

namespace swsearch {

// Of each architecture from narrow to wide.
enum class Instructions {
  kScalar,      // what the compiler aims at by default, on every processor
  kSse41,       // x86-64: SSE4.1 and SSSE3
  kAvx2,        // x86-64: AVX2
  kAvx512bw,    // x86-64: AVX-512 F, BW, DQ and VL
  kAvx512vbmi,  // x86-64: the same and VBMI
  kNeon,        // aarch64: always there
};

constexpr Instructions kAllInstructions[] = {Instructions::kScalar,   Instructions::kSse41,
                                             Instructions::kAvx2,     Instructions::kAvx512bw,
                                             Instructions::kAvx512vbmi, Instructions::kNeon};

// What users and swsearch/extension.py call it.
const char* name_of(Instructions instructions);

// Whether this binary has kernels for it, and the processor and the operating system support it.
bool is_available(Instructions instructions);

// Whether the processor multiplies without carries (PCLMULQDQ and SSE4.1), as checksums do; false but on x86-64.
bool has_carryless_products();

// All that are available, the widest first; kScalar is the last.
std::vector<Instructions> available_instructions();

// Find one by its exact name; false if there is none of this name, or if it is not available.
bool find_instructions(const char* name, Instructions& found);

}  // namespace swsearch
