// instructions.cuh: what CUDA C++ has no function for, as inline PTX. tests/support/host_cuda/shim.h gives the same
// functions in C++, so that kernels run where there is no GPU; it defines the guard, so that this file is left out
// there.
#ifndef SWSEARCH_INSTRUCTIONS_CUH
#define SWSEARCH_INSTRUCTIONS_CUH

// Byte permute with sign replication: a selector nibble of 8 + k gives byte k's sign in all eight bits
// (__byte_perm leaves that bit out).
__device__ __forceinline__ unsigned int permute(unsigned int a, unsigned int b, unsigned int selector) {
  unsigned int result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(selector));
  return result;
}

// Multiply-add kept on the FMA pipe: with a constant 1 the compiler would make an addition of it, on the ALU.
__device__ __forceinline__ unsigned int multiply_add(unsigned int a, unsigned int b, unsigned int c) {
  unsigned int result;
  asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

// Add the half-precision numbers in both halves of two words.
__device__ __forceinline__ unsigned int half_add(unsigned int a, unsigned int b) {
  unsigned int result;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}

// The same, and the larger of the sums and 0.
__device__ __forceinline__ unsigned int half_add_floor(unsigned int a, unsigned int b) {
  unsigned int result;
  asm("fma.rn.relu.f16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(0x3c003c00u), "r"(b));
  return result;
}

// The larger half-precision numbers of two words.
__device__ __forceinline__ unsigned int half_max(unsigned int a, unsigned int b) {
  unsigned int result;
  asm("max.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}

// Add one half of a word, the upper or the lower, to one half of `sum`, and 0 to the other: a multiply-add by (0, 1) or
// (1, 0), in which the half is a selector of the instruction and costs nothing.
template <bool kToUpper>
__device__ __forceinline__ unsigned int half_add_one(unsigned int word, bool upper, unsigned int sum) {
  const unsigned int factors = kToUpper ? 0x3c000000u : 0x00003c00u;
  unsigned int result;
  if (upper)
    asm("{.reg .b16 l, h; .reg .b32 b; mov.b32 {l, h}, %1; mov.b32 b, {h, h}; fma.rn.f16x2 %0, b, %2, %3;}"
        : "=r"(result) : "r"(word), "r"(factors), "r"(sum));
  else
    asm("{.reg .b16 l, h; .reg .b32 b; mov.b32 {l, h}, %1; mov.b32 b, {l, l}; fma.rn.f16x2 %0, b, %2, %3;}"
        : "=r"(result) : "r"(word), "r"(factors), "r"(sum));
  return result;
}

// Load a flag in global memory. What its writer stored before its store_release of the value is seen by this thread,
// in whichever block the writer is; other lanes see it after a __syncwarp.
__device__ __forceinline__ int load_acquire(const int* flag) {
  int value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

// Store a flag in global memory after everything that this thread stored, or saw by a __syncwarp, before.
__device__ __forceinline__ void store_release(int* flag, int value) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

#endif
