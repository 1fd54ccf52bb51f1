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
