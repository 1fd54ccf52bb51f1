// cpu_rates: how many of the scan's instructions an x86-64 processor does in a cycle, and how long a cycle is.
//
// Each instruction depends only on itself ten instructions before, and the cell's mix is that of cpu/search/scan_kernel.hpp:
// 1 saturated sum, 3 differences, 6 maxima. A move between registers needs no unit that computes: its rate is how many
// instructions a cycle can be begun. The clock is a chain of additions, one a cycle (of registers: newer processors do
// additions of constants ahead). Windows are short and the best counts, so that other work on the machine hardly does.
//
// Prints lines of "name value": GHz, then instructions a nanosecond. Build: cc -O2 cpu_rates.c -o cpu_rates
#include <stdio.h>
#include <time.h>

#define CLOBBERS \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "cc"
#define X128(op, k) op " %%xmm0, %%xmm" #k "\n"
#define X256(op, k) "v" op " %%ymm0, %%ymm" #k ", %%ymm" #k "\n"
#define X512(op, k) "v" op " %%zmm0, %%zmm" #k ", %%zmm" #k "\n"
#define TEN(X, op) X(op, 1) X(op, 2) X(op, 3) X(op, 4) X(op, 5) X(op, 6) X(op, 7) X(op, 8) X(op, 9) X(op, 10)
#define CELL(X)                                                                                               \
  X("pmaxsb", 1) X("psubb", 2) X("pmaxsb", 3) X("paddsb", 4) X("pmaxsb", 5) X("psubb", 6) X("pmaxsb", 7) \
  X("pmaxsb", 8) X("psubb", 9) X("pmaxsb", 10)

enum { kRepeats = 20, kInstructions = 10 * kRepeats, kRounds = 10000, kWindows = 200 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * t.tv_sec + t.tv_nsec;
}

#define MEASURE(name, text, after)                                                                            \
  do {                                                                                                        \
    double best = 0;                                                                                          \
    for (int window = 0; window < kWindows; ++window) {                                                       \
      long rounds = kRounds;                                                                                  \
      const double begun = now();                                                                             \
      __asm__ volatile("1:\n.rept 20\n" text ".endr\ndec %0\njnz 1b\n" after : "+r"(rounds) : : CLOBBERS, "rax", "rbx"); \
      const double rate = (double)kInstructions * kRounds / (now() - begun);                                  \
      best = rate > best ? rate : best;                                                                       \
    }                                                                                                         \
    printf("%s %.4f\n", name, best);                                                                          \
  } while (0)

#define WIDTH(bits, X, after)                                 \
  do {                                                        \
    MEASURE("sum" #bits, TEN(X, "paddsb"), after);            \
    MEASURE("difference" #bits, TEN(X, "psubb"), after);      \
    MEASURE("maximum" #bits, TEN(X, "pmaxsb"), after);        \
    MEASURE("cell" #bits, CELL(X), after);                    \
  } while (0)

#define ADD(op, k) "add %%rbx, %%rax\n"

int main(void) {
  MEASURE("clock", TEN(ADD, ""), "");
  MEASURE("moves", TEN(X128, "movdqa"), "");
  if (__builtin_cpu_supports("sse4.1")) WIDTH(128, X128, "");
  if (__builtin_cpu_supports("avx2")) WIDTH(256, X256, "vzeroupper\n");
  if (__builtin_cpu_supports("avx512bw")) WIDTH(512, X512, "vzeroupper\n");
  return 0;
}
