// recurrence.cuh: Gotoh's recurrence on registers, once, for every kernel.
//
// With q = cost of a gap's first residue and r = cost of each further one:
//
//     t = max(diagonal + s, E)      VIADDMNMX   (ALU pipe)
//     H = max(t, F, floor)          VIMNMX3     (ALU; the floor is score 0 and stands in local mode only)
//     g = H - q                     IMAD        (FMA pipe, runs beside the ALU)
//     E = max(E - r, g)             VIADDMNMX
//     F = max(F - r, g)             VIADDMNMX
//
// 4 ALU instructions for two cells, and half a VIMNMX3 more to remember the best. swsearch/reference.py is what
// it must equal, cell by cell.
//
// Values are biased: a register holds score + bias. The bias keeps every H at or above q, so that the 32-bit
// multiply-add that computes g never borrows from the upper half. swsearch/engines/gpu/limits.py derives the bias and
// the largest score that is certain; nothing is guessed here.
#pragma once

#include "instructions.cuh"

typedef unsigned int u32;

enum Mode { kLocal = 0, kGlobal = 1, kSemiglobal = 2 };

constexpr int kWarpLanes = 32;
constexpr u32 kAllLanes = 0xffffffffu;

// Two signed 16-bit scores in a register.
struct Pair16 {
  static constexpr int kHalves = 2;
  static __device__ __forceinline__ u32 add_max(u32 a, u32 b, u32 c) { return __viaddmax_s16x2(a, b, c); }
  static __device__ __forceinline__ u32 max2(u32 a, u32 b) { return __vmaxs2(a, b); }
  static __device__ __forceinline__ u32 max3(u32 a, u32 b, u32 c) { return __vimax3_s16x2(a, b, c); }
  static __device__ __forceinline__ u32 both(int value) { return (u32)(value & 0xffff) * 0x10001u; }
  static __device__ __forceinline__ u32 pack(int low, int high) {
    return (u32)(low & 0xffff) | ((u32)high << 16);
  }
  static __device__ __forceinline__ int half(u32 word, int index) { return (short)(word >> (16 * index)); }
};

// One signed 32-bit score in a register, for what does not fit 16 bits.
struct Single32 {
  static constexpr int kHalves = 1;
  static __device__ __forceinline__ u32 add_max(u32 a, u32 b, u32 c) {
    return (u32)__viaddmax_s32((int)a, (int)b, (int)c);
  }
  static __device__ __forceinline__ u32 max2(u32 a, u32 b) { return (u32)max((int)a, (int)b); }
  static __device__ __forceinline__ u32 max3(u32 a, u32 b, u32 c) {
    return (u32)__vimax3_s32((int)a, (int)b, (int)c);
  }
  static __device__ __forceinline__ u32 both(int value) { return (u32)value; }
  static __device__ __forceinline__ u32 pack(int low, int) { return (u32)low; }
  static __device__ __forceinline__ int half(u32 word, int) { return (int)word; }
};

// What the recurrence needs to know, in the form that the instructions take.
struct Costs {
  u32 minus_first;   // -q in every half, as one 32-bit number for multiply_add
  u32 minus_extend;  // -r in each half
  u32 floor;         // score 0 in each half
  u32 one;           // 1, which the compiler must not know
};

// Advance one cell (or two): H, E and F of this row are replaced, the diagonal becomes the row's old H.
template <class Lane, Mode kMode>
__device__ __forceinline__ void cell(u32& diagonal, u32 score, u32& h, u32& e, u32& f, const Costs& costs) {
  const u32 t = Lane::add_max(diagonal, score, e);
  diagonal = h;
  h = kMode == kLocal ? Lane::max3(t, f, costs.floor) : Lane::max2(t, f);
  const u32 g = multiply_add(h, costs.one, costs.minus_first);
  e = Lane::add_max(e, costs.minus_extend, g);
  f = Lane::add_max(f, costs.minus_extend, g);
}

// Boundary values of the score matrix, biased. Rows and columns count from 1; 0 is the corner.
template <Mode kMode>
struct Boundary {
  int bias, open, extend;  // open: cost of a gap before its first residue
  __device__ __forceinline__ int at(int steps) const {
    return kMode == kGlobal && steps > 0 ? bias - open - steps * extend : bias;
  }
  // F that enters the first row, or E that enters the first column: a gap opened from the boundary
  __device__ __forceinline__ int gap_at(int steps) const { return at(steps) - open - extend; }
};
