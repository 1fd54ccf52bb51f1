// instructions: asks the processor, and the operating system through it.
#include "isa/instructions.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace swsearch {

#if defined(__x86_64__)
namespace {

struct Processor {
  bool products = false, sse41 = false, avx2 = false, avx512bw = false, avx512vbmi = false;
};

// The registers that the operating system keeps for each thread (XCR0). Without -mxsave there is no intrinsic for it.
std::uint64_t kept_registers() {
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

// Not by __builtin_cpu_supports: the runtime library of some compilers (zig c++, which makes the wheels) says no to all.
Processor ask_processor() {
  constexpr std::uint64_t kYmm = 0x6, kZmm = 0xe6;  // of XCR0: what AVX, and what AVX-512 takes
  constexpr std::uint32_t kSse41 = 1u << 9 | 1u << 19;  // SSSE3, SSE4.1
  constexpr std::uint32_t kProducts = 1u << 1 | 1u << 19;  // PCLMULQDQ, SSE4.1
  constexpr std::uint32_t kOsxsave = 1u << 27, kAvx = 1u << 28;
  constexpr std::uint32_t kAvx2 = 1u << 5, kVbmi = 1u << 1;
  constexpr std::uint32_t kAvx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
  Processor found;
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return found;
  found.products = (c & kProducts) == kProducts;
  found.sse41 = (c & kSse41) == kSse41;
  std::uint64_t kept = (c & kOsxsave) && (c & kAvx) ? kept_registers() : 0;
#if defined(__APPLE__)
  if (kept & kYmm) kept |= kZmm;  // macOS keeps the wider ones from a thread's first use of them on
#endif
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
  found.avx2 = (kept & kYmm) == kYmm && (b & kAvx2);
  found.avx512bw = (kept & kZmm) == kZmm && (b & kAvx512) == kAvx512;
  found.avx512vbmi = found.avx512bw && (c & kVbmi);
  return found;
}

const Processor& this_processor() {
  static const Processor processor = ask_processor();
  return processor;
}

}  // namespace
#endif

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
  const Processor& processor = this_processor();
  switch (instructions) {
    case Instructions::kSse41:
      return processor.sse41;
    case Instructions::kAvx2:
      return processor.avx2;
    case Instructions::kAvx512bw:
      return processor.avx512bw;
    case Instructions::kAvx512vbmi:
      return processor.avx512vbmi;
    default:
      return false;
  }
#elif defined(__aarch64__)
  return instructions == Instructions::kNeon;
#else
  return false;
#endif
}

bool has_carryless_products() {
#if defined(__x86_64__)
  return this_processor().products;
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
