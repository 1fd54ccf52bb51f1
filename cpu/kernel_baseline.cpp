// kernel_baseline: the kernels for any processor that the compiler aims at by default.
#include "tile.hpp"

namespace swsearch {
namespace baseline {
#define SWSEARCH_NAME "baseline"
#include "kernel.hpp"
}  // namespace baseline

const Kernels& baseline_kernels() { return baseline::kKernels; }

const Kernels& choose_kernels(const char* name) {
  const Kernels* found = &baseline_kernels();
#if defined(__x86_64__)
  const Kernels* const wider[] = {&avx2_kernels(), &avx512_kernels()};
  const bool usable[] = {__builtin_cpu_supports("avx2") != 0,
                         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")};
  for (int k = 0; k < 2; ++k) {
    bool wanted = name == nullptr || *name == '\0';
    for (const char *a = name, *b = wider[k]->name; !wanted && a != nullptr && *a == *b; ++a, ++b) wanted = *a == '\0';
    if (usable[k] && wanted) found = wider[k];
  }
#else
  (void)name;
#endif
  return *found;
}

}  // namespace swsearch
