// recurrence.cuh: Gotoh's recurrence on registers, the only home it has on the GPU, in two forms: `cell` for searches
// and for the study; `pair_cell` for the strips of one pair, where the chain of F from row to row must be short.
//
// With q = cost of a gap's first residue and r = cost of each further one, `cell` takes
//
//     Pair16, Single32                            Half16 (local mode)
//     t = max(diagonal + s, E)      VIADDMNMX     x = diagonal + s              HADD2, or two HFMA2
//     H = max(t, F, floor)          VIMNMX3       H = max(x, E, F)              VIMNMX3
//     g = H - q                     IMAD          g = H - q                     HADD2
//     E = max(E - r, g)             VIADDMNMX     E = max(E - r, g, 0)          VIADDMNMX.RELU
//     F = max(F - r, g)             VIADDMNMX     F = max(F - r, g, 0)          VIADDMNMX.RELU
//
// The left column is 4 instructions of the ALU for two cells, the right one 3; IMAD, HADD2 and HFMA2 run on the FMA pipes
// beside it. Half a VIMNMX3 more remembers the best. swsearch/reference.py is what both must equal, cell by cell.
//
// Left, values are biased: a register holds score + bias. The bias keeps every H at or above q, so that the 32-bit
// multiply-add that computes g never borrows from the upper half. swsearch/engines/gpu/limits.py derives the bias and
// the largest score that is certain; nothing is guessed here.
//
// Right, a score n of 0 to 2,047 is the 16 bits of n, which half precision reads as n times 2^-24. Why it is exact:
//   - Multiples of 2^-24 up to 2^-13 are all half-precision numbers (subnormals, and the first binade above them has
//     the same spacing). Sums of two whose magnitudes are below 2,048 are exact if their own magnitude is at most 2,048.
//   - Of two numbers that are not negative the larger has the larger bits; every negative one, -0 too, is below 0 as a
//     16-bit integer. A maximum with E or F, which are never below 0, is therefore that of the scores, floor included:
//     in local mode E and F may be raised to 0, since H is at least 0.
//   - No sum is -0: to nearest, n - n is +0, and so is +0 plus a score of -0, which the product with 0 may be.
//   - E - r and F - r are computed as 16-bit integers, which is what the bits are.
//   - Where the best true score is 2,047 or less, every sum is at most that, so all are exact. Otherwise the first sum
//     above 2,047, exact before it is rounded, becomes 2,048 or more, since rounding is monotone and 2,048 is a
//     half-precision number; H does not fall below it, so that the best is 2,048 or more. Beyond, sums are rounded and
//     may be infinite, never negative or NaN (nothing infinite is subtracted): a best of 2,048 or more says that the
//     true score is 2,048 or more, and no more than that.
#pragma once

#include "instructions.cuh"

typedef unsigned int u32;

enum Mode { kLocal = 0, kGlobal = 1, kSemiglobal = 2 };

// Whether the device has an instruction for the sum and maximum of two 16-bit integers.
#ifndef SWSEARCH_FUSED
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1200)
#define SWSEARCH_FUSED 0
#else
#define SWSEARCH_FUSED 1
#endif
#endif

constexpr int kWarpLanes = 32;
constexpr u32 kAllLanes = 0xffffffffu;
constexpr int kUncertain = 1 << 30;  // stands for a score that a lane cannot hold

// What the recurrence needs to know, in the form that the instructions take.
struct Costs {
  u32 minus_first;   // -q in every half: as one 32-bit number for multiply_add, or in half precision
  u32 minus_extend;  // -r in each half
  u32 floor;         // score 0 in each half
  u32 one;           // 1, which the compiler must not know
};

// The scores of one row with two subjects: one half, the upper or the lower, of a word each.
struct TwoScores {
  u32 first, second;
  bool upper;  // known once loops over rows are unrolled
};

// Two signed 16-bit scores in a register.
struct Pair16 {
  static constexpr int kHalves = 2;
  static constexpr bool kIsHalf = false;
  static __device__ __forceinline__ u32 add_max(u32 a, u32 b, u32 c) { return __viaddmax_s16x2(a, b, c); }
  static __device__ __forceinline__ u32 max2(u32 a, u32 b) { return __vmaxs2(a, b); }
  static __device__ __forceinline__ u32 max3(u32 a, u32 b, u32 c) { return __vimax3_s16x2(a, b, c); }
  static __device__ __forceinline__ u32 both(int value) { return (u32)(value & 0xffff) * 0x10001u; }
  static __device__ __forceinline__ u32 pack(int low, int high) {
    return (u32)(low & 0xffff) | ((u32)high << 16);
  }
  static __device__ __forceinline__ int half(u32 word, int index) { return (short)(word >> (16 * index)); }
  static __device__ __forceinline__ Costs costs(int first, int extend, int bias, u32 one) {
    return {0u - (u32)first * 0x10001u, both(-extend), both(bias), one};
  }
  // Two scores of 16 bits, for lookup tables
  static __device__ __forceinline__ u32 stored(u32 scores) { return scores; }
};

// Two scores of 0 to 2,047 in a register, each the bits of a half-precision number: for local mode alone.
struct Half16 {
  static constexpr int kHalves = 2;
  static constexpr bool kIsHalf = true;
#if SWSEARCH_FUSED
  static __device__ __forceinline__ u32 max2(u32 a, u32 b) { return __vmaxs2(a, b); }
  static __device__ __forceinline__ u32 max3(u32 a, u32 b, u32 c) { return __vimax3_s16x2(a, b, c); }
  static __device__ __forceinline__ u32 add_max_floor(u32 a, u32 b, u32 c) { return __viaddmax_s16x2_relu(a, b, c); }
#else
  static __device__ __forceinline__ u32 max2(u32 a, u32 b) { return half_max(a, b); }
  static __device__ __forceinline__ u32 max3(u32 a, u32 b, u32 c) { return half_max(half_max(a, b), c); }
  static __device__ __forceinline__ u32 add_max_floor(u32 a, u32 b, u32 c) { return half_max(half_add_floor(a, b), c); }
#endif
  // boundary values: E and F are never below 0
  static __device__ __forceinline__ u32 both(int value) { return Pair16::both(max(value, 0)); }
  static __device__ __forceinline__ u32 pack(int low, int high) { return Pair16::pack(max(low, 0), max(high, 0)); }
  static __device__ __forceinline__ int half(u32 word, int index) { return Pair16::half(word, index); }
  static __device__ __forceinline__ Costs costs(int first, int extend, int, u32 one) {
    const u32 minus_extend = SWSEARCH_FUSED ? Pair16::both(-extend) : Pair16::both(extend) | 0x80008000u;
    return {Pair16::both(first) | 0x80008000u, minus_extend, 0, one};
  }
  // Sign and magnitude of two scores above -128 * 256
  static __device__ __forceinline__ u32 stored(u32 scores) {
    const u32 signs = scores & 0x80008000u;
    return ((scores ^ (signs >> 15) * 0xffffu) + (signs >> 15)) | signs;
  }
  static __device__ __forceinline__ u32 sum(u32 diagonal, u32 scores) { return half_add(diagonal, scores); }
  static __device__ __forceinline__ u32 sum(u32 diagonal, const TwoScores& scores) {
    const u32 low = half_add_one<false>(scores.first, scores.upper, diagonal);
    return half_add_one<true>(scores.second, scores.upper, low);
  }
};

// One signed 32-bit score in a register, for what does not fit 16 bits.
struct Single32 {
  static constexpr int kHalves = 1;
  static constexpr bool kIsHalf = false;
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
  static __device__ __forceinline__ Costs costs(int first, int extend, int bias, u32 one) {
    return {0u - (u32)first, both(-extend), both(bias), one};
  }
};

// Advance one cell (or two): H, E and F of this row are replaced, the diagonal becomes the row's old H.
template <class Lane, Mode kMode, class Scores>
__device__ __forceinline__ void cell(u32& diagonal, const Scores& scores, u32& h, u32& e, u32& f, const Costs& costs) {
  if constexpr (Lane::kIsHalf) {
    static_assert(kMode == kLocal, "half precision holds no score below 0");
    const u32 x = Lane::sum(diagonal, scores);
    diagonal = h;
    h = Lane::max3(x, e, f);
    const u32 g = half_add(h, costs.minus_first);
    e = Lane::add_max_floor(e, costs.minus_extend, g);
    f = Lane::add_max_floor(f, costs.minus_extend, g);
  } else {
    const u32 t = Lane::add_max(diagonal, scores, e);
    diagonal = h;
    h = kMode == kLocal ? Lane::max3(t, f, costs.floor) : Lane::max2(t, f);
    const u32 g = multiply_add(h, costs.one, costs.minus_first);
    e = Lane::add_max(e, costs.minus_extend, g);
    f = Lane::add_max(f, costs.minus_extend, g);
  }
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
