// shim.h: the names of CUDA C++ that the kernels use, for a host compiler. Included before a kernel's source.
//
// What is missing is a compile error: add it here. Instructions do what the PTX manual says of them, a lane of 16 bits
// wraps where it wraps on the device.
#pragma once

#include "launch.h"

#define __global__
#define __device__
#define __host__
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
// only what rewrite() in tests/support/host_cuda.py did not understand is left
#define __shared__ static_assert(false, "this form of __shared__ is not supported: one variable a declaration");

#define threadIdx (::host_cuda::current->index)
#define blockIdx (::host_cuda::current->block->index)
#define blockDim (::host_cuda::grid.threads)
#define gridDim (::host_cuda::grid.blocks)
constexpr int warpSize = host_cuda::kLanes;

struct alignas(8) int2 { int x, y; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline int2 make_int2(int x, int y) { return {x, y}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// Barriers and fences. A fence lets others run where the schedule is shuffled: what must stand before it, does.
inline void __syncthreads() { host_cuda::block_barrier(); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { host_cuda::warp_operation(host_cuda::kSyncWarp, mask, 0, 0); }
inline void __threadfence() {
  if (host_cuda::grid.seeded) host_cuda::suspend();
}
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
inline void __nanosleep(unsigned) { host_cuda::suspend(); }
inline long long clock64() {
  static long long ticks = 0;
  return ++ticks;
}

// Warp primitives
template <class T>
T host_cuda_shuffle(host_cuda::What what, unsigned mask, T value, int source) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = host_cuda::warp_operation(what, mask, source, bits);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const int lane = host_cuda::current->lane;
  return host_cuda_shuffle(host_cuda::kShuffle, mask, value, (lane & -width) + (source & (width - 1)));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const int lane = host_cuda::current->lane, source = lane - (int)delta;
  return host_cuda_shuffle(host_cuda::kShuffleUp, mask, value, source < (lane & -width) ? lane : source);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const int lane = host_cuda::current->lane, source = lane + (int)delta;
  return host_cuda_shuffle(host_cuda::kShuffleDown, mask, value, source >= (lane & -width) + width ? lane : source);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  const int lane = host_cuda::current->lane, source = lane ^ bits;
  return host_cuda_shuffle(host_cuda::kShuffleXor, mask, value, source >= (lane & -width) + width ? lane : source);
}
inline unsigned __ballot_sync(unsigned mask, int vote) {
  return (unsigned)host_cuda::warp_operation(host_cuda::kBallot, mask, 0, vote != 0);
}
inline int __any_sync(unsigned mask, int vote) {
  return host_cuda::warp_operation(host_cuda::kAny, mask, 0, vote != 0) != 0;
}
inline int __all_sync(unsigned mask, int vote) {
  return host_cuda::warp_operation(host_cuda::kAll, mask, 0, vote != 0) == mask;
}

// Atomics: others run before each, so that waiting for a lock ends.
template <class T>
struct host_cuda_same { typedef T type; };
template <class T, class Change>
T host_cuda_atomic(const char* name, T* place, Change change) {
  host_cuda::poll(name);
  const T old = *place, next = change(old);
  if (next != old) ++host_cuda::grid.progress;
  *place = next;
  host_cuda::polled(place, (long long)old);
  return old;
}
#define HOST_CUDA_ATOMIC(name, expression)                                                   \
  template <class T>                                                                         \
  T name(T* place, typename host_cuda_same<T>::type value) {                                 \
    return host_cuda_atomic(#name, place, [&](T old) -> T { (void)old; return expression; }); \
  }
HOST_CUDA_ATOMIC(atomicAdd, (T)(old + value))
HOST_CUDA_ATOMIC(atomicSub, (T)(old - value))
HOST_CUDA_ATOMIC(atomicMax, old < value ? value : old)
HOST_CUDA_ATOMIC(atomicMin, value < old ? value : old)
HOST_CUDA_ATOMIC(atomicExch, value)
HOST_CUDA_ATOMIC(atomicOr, (T)(old | value))
HOST_CUDA_ATOMIC(atomicAnd, (T)(old & value))
template <class T>
T atomicCAS(T* place, typename host_cuda_same<T>::type expected, typename host_cuda_same<T>::type value) {
  return host_cuda_atomic("atomicCAS", place, [&](T old) -> T { return old == expected ? value : old; });
}

// Loads and stores with a hint for the caches
template <class T> T __ldg(const T* place) { return *place; }
template <class T> T __ldcg(const T* place) { return *place; }
template <class T> T __ldcs(const T* place) { return *place; }
template <class T> void __stcg(T* place, T value) { *place = value; }
template <class T> void __stcs(T* place, T value) { *place = value; }

// Arithmetic
#define HOST_CUDA_EXTREMES(T)                         \
  inline T min(T a, T b) { return b < a ? b : a; }    \
  inline T max(T a, T b) { return a < b ? b : a; }
HOST_CUDA_EXTREMES(int)
HOST_CUDA_EXTREMES(unsigned)
HOST_CUDA_EXTREMES(long long)
HOST_CUDA_EXTREMES(unsigned long long)
inline unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
inline unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
inline unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
inline unsigned max(int a, unsigned b) { return max((unsigned)a, b); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }

inline int __viaddmax_s32(int a, int b, int c) { return max((int)((unsigned)a + (unsigned)b), c); }
inline int __viaddmax_s32_relu(int a, int b, int c) { return max(__viaddmax_s32(a, b, c), 0); }
inline int __vimax3_s32(int a, int b, int c) { return max(max(a, b), c); }
inline int __vimax3_s32_relu(int a, int b, int c) { return max(__vimax3_s32(a, b, c), 0); }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return shift % 32 ? high << shift % 32 | low >> (32 - shift % 32) : high;
}

// both halves of a word
template <class Function>
__forceinline__ unsigned host_cuda_halves(unsigned a, unsigned b, Function function) {
  const unsigned low = (unsigned short)function((short)a, (short)b);
  return low | (unsigned)(unsigned short)function((short)(a >> 16), (short)(b >> 16)) << 16;
}
inline unsigned __vadd2(unsigned a, unsigned b) {
  return host_cuda_halves(a, b, [](short x, short y) { return (short)(x + y); });
}
inline unsigned __vmaxs2(unsigned a, unsigned b) {
  return host_cuda_halves(a, b, [](short x, short y) { return x < y ? y : x; });
}
inline unsigned __viaddmax_s16x2(unsigned a, unsigned b, unsigned c) { return __vmaxs2(__vadd2(a, b), c); }
inline unsigned __viaddmax_s16x2_relu(unsigned a, unsigned b, unsigned c) {
  return __vmaxs2(__viaddmax_s16x2(a, b, c), 0);
}
inline unsigned __vimax3_s16x2(unsigned a, unsigned b, unsigned c) { return __vmaxs2(__vmaxs2(a, b), c); }

inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = (uint64_t)b << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return result;
}

// In place of cuda/instructions.cuh
#define SWSEARCH_INSTRUCTIONS_CUH
inline unsigned permute(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = (uint64_t)b << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned nibble = selector >> 4 * i, byte = (unsigned)(bytes >> 8 * (nibble & 7)) & 0xff;
    result |= (nibble & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << 8 * i;
  }
  return result;
}
inline unsigned multiply_add(unsigned a, unsigned b, unsigned c) { return a * b + c; }
// half precision: sums are exact as doubles, and rounded to nearest, ties to even, as they become halves again
double host_cuda_number(unsigned half);
unsigned host_cuda_half(double number);
template <class Function>
__forceinline__ unsigned host_cuda_half_lanes(unsigned a, unsigned b, Function function) {
  const auto lane = [&](int at) {
    return host_cuda_half(function(host_cuda_number(a >> at & 0xffff), host_cuda_number(b >> at & 0xffff)));
  };
  return lane(0) | lane(16) << 16;
}
inline unsigned half_add(unsigned a, unsigned b) {
  return host_cuda_half_lanes(a, b, [](double x, double y) { return x + y; });
}
inline unsigned half_add_floor(unsigned a, unsigned b) {
  return host_cuda_half_lanes(a, b, [](double x, double y) { return x + y > 0 ? x + y : 0.0; });
}
inline unsigned half_max(unsigned a, unsigned b) {
  return host_cuda_half_lanes(a, b, [](double x, double y) { return __builtin_signbit(x) || x < y ? y : x; });
}
template <bool kToUpper>
inline unsigned half_add_one(unsigned word, bool upper, unsigned sum) {
  const double number = host_cuda_number(upper ? word >> 16 : word & 0xffff);
  unsigned result = 0;
  for (int half = 0; half < 2; ++half)
    result |= host_cuda_half(number * (half == kToUpper) + host_cuda_number(sum >> 16 * half & 0xffff)) << 16 * half;
  return result;
}
inline int load_acquire(const int* flag) {
  host_cuda::poll("load_acquire");
  const int value = *const_cast<const volatile int*>(flag);
  host_cuda::polled(flag, value);
  return value;
}
inline void store_release(int* flag, int value) {
  if (host_cuda::grid.seeded) host_cuda::suspend();
  *const_cast<volatile int*>(flag) = value;
  ++host_cuda::grid.progress;
  host_cuda::suspend();
}
