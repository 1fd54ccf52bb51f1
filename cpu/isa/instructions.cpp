// instructions: asks the processor, and the operating system through it.
#include "isa/instructions.hpp"

#include <algorithm>
#include <cstring>

namespace swsearch {

const char* name_of(Instructions instructions) {
  switch (instructions) {
    case Instructions::kSse41:
      return "sse41";
    case Instructions::kAvx2:
      return "avx2";
    case Instructions::kAvx512bw:
      return "avx512bw";
    case Instructions::kAvx512vbmi:
      return "avx512vbmi";
    case Instructions::kNeon:
      return "neon";
    default:
      return "scalar";
  }
}

bool is_available(Instructions instructions) {
  if (instructions == Instructions::kScalar) return true;
#if defined(__x86_64__)
  __builtin_cpu_init();
  // these also ask whether the operating system keeps the registers (XGETBV)
  const bool avx512bw = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  switch (instructions) {
    case Instructions::kSse41:
      return __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("ssse3");
    case Instructions::kAvx2:
      return __builtin_cpu_supports("avx2");
    case Instructions::kAvx512bw:
      return avx512bw;
    case Instructions::kAvx512vbmi:
      return avx512bw && __builtin_cpu_supports("avx512vbmi");
    default:
      return false;
  }
#elif defined(__aarch64__)
  return instructions == Instructions::kNeon;
#else
  return false;
#endif
}

std::vector<Instructions> available_instructions() {
  std::vector<Instructions> found;
  for (const Instructions each : kAllInstructions) {
    if (is_available(each)) found.push_back(each);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

bool find_instructions(const char* name, Instructions& found) {
  for (const Instructions each : kAllInstructions) {
    if (std::strcmp(name, name_of(each)) == 0 && is_available(each)) {
      found = each;
      return true;
    }
  }
  return false;
}

}  // namespace swsearch
