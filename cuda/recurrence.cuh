// recurrence.cuh: Gotoh's recurrence on registers, the only home it has on the GPU, in two forms: `cell` for searches
// and for the study; `pair_cell` for the strips of one pair, where the chain of F from row to row must be short.
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

// What the recurrence of one pair in 32 bits needs to know; nothing is biased.
struct PairCosts {
  int minus_first;   // -q
  int minus_extend;  // -r
  u32 one, minus_one;  // 1 and -1, which the compiler must not know
  __device__ __forceinline__ int add(int a, int b) const { return (int)multiply_add((u32)a, one, (u32)b); }
  __device__ __forceinline__ int subtract(int a, int b) const { return (int)multiply_add((u32)b, minus_one, (u32)a); }
};

// Advance one cell of one pair, as `cell` does, for lanes that work on neighbouring rows: F goes from row to row, so
// its chain must be short. F is opened from t instead of H: opening a gap after F itself never gains, since a gap's
// first residue costs no less than a further one. One VIADDMNMX per row is then all that waits for the row above.
//
// Where kDirections, four bits are shifted into `way`, one funnel shift each, the rest on the FMA pipe:
//     H is less than the pair's score; less than F; E to the right is opened here; F below is opened here.
// A pair that scores H counts before F, so then the second bit is set; in local mode, where H is 0, neither is.
template <bool kIsLocal, bool kDirections>
__device__ __forceinline__ void pair_cell(int& diagonal, int score, int& h, int& e, int& f, u32& way,
                                          const PairCosts& costs) {
  const int t = kIsLocal ? __viaddmax_s32_relu(diagonal, score, e) : __viaddmax_s32(diagonal, score, e);
  const int best = max(t, f);
  const int from_h = costs.add(best, costs.minus_first), from_t = costs.add(t, costs.minus_first);
  if (kDirections) {
    int under_pair = costs.subtract(costs.add(diagonal, score), best);
    int under_f = ~under_pair | costs.subtract(f, best);
    if (kIsLocal) {
      const int nothing = costs.add(best, -1);  // below 0 where H is 0
      under_pair &= ~nothing, under_f &= ~nothing;
    }
    way = __funnelshift_l(under_pair, way, 1);
    way = __funnelshift_l(under_f, way, 1);
    way = __funnelshift_l(costs.subtract(costs.add(e, costs.minus_extend), from_h), way, 1);
    way = __funnelshift_l(costs.subtract(costs.add(f, costs.minus_extend), from_t), way, 1);
  }
  diagonal = h;
  h = best;
  e = __viaddmax_s32(e, costs.minus_extend, from_h);
  f = __viaddmax_s32(f, costs.minus_extend, from_t);
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
