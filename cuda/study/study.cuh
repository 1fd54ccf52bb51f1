// study.cuh: what the kernels of the study share: a pair of sequences, its matrices, and one cell with its direction.
//
// Scores are plain numbers here, without the engine's bias: a lane of 32 bits has no neighbour to borrow from, so
// that a matrix on the device is compared with the reference as it stands. Of E and F a cell keeps what it hands on:
// e[i][j] enters column j + 1, f[i][j] enters row i + 1. With linear gaps neither is kept: E and F of a cell are its
// neighbours' H less the cost of a residue, which is the same recurrence with gap_open 0.
#pragma once
#include "recurrence.cuh"

typedef unsigned char u8;
typedef unsigned long long u64;

constexpr Mode kMode = static_cast<Mode>(SWSEARCH_MODE);
constexpr bool kAffine = SWSEARCH_AFFINE != 0;

#ifdef SWSEARCH_DIRECTIONS
constexpr bool kDirections = SWSEARCH_DIRECTIONS != 0;
#else
constexpr bool kDirections = false;
#endif

#ifdef SWSEARCH_KEEP
constexpr bool kKeep = SWSEARCH_KEEP != 0;  // the whole score matrix goes to memory, to be checked
#else
constexpr bool kKeep = true;
#endif

static_assert(kMode == kGlobal || kMode == kLocal, "the papers have global and local alignment");

// Where H came from, and whether the gaps that leave the cell are extensions; swsearch/bench/study/expected.py reads
// them.
constexpr u32 kStop = 0, kPair = 1, kUp = 2, kLeft = 3;  // kUp: F, a query residue alone; kLeft: E
constexpr u32 kExtendsE = 4, kExtendsF = 8;

// Every kernel of a pair begins with these parameters.
#define STUDY_PAIR_PARAMETERS                                                                            \
  const u8 *__restrict__ query, const u8 *__restrict__ subject, int rows, int columns, int match, int mismatch, \
      int gap_open, int gap_extend, u32 one
#define STUDY_PAIR                                                                                            \
  Problem {                                                                                                   \
    query, subject, rows, columns, match, mismatch, make_costs(gap_open, gap_extend, one), gap_open, gap_extend \
  }

__device__ __forceinline__ Costs make_costs(int gap_open, int gap_extend, u32 one) {
  return Costs{(u32)(-gap_open - gap_extend), (u32)-gap_extend, 0u, one};
}

struct Problem {
  const u8* query;    // residue of row i at i - 1
  const u8* subject;  // residue of column j at j - 1
  int rows, columns;
  int match, mismatch;
  Costs costs;
  int gap_open, gap_extend;
  __device__ __forceinline__ Boundary<kMode> boundary() const { return {0, gap_open, gap_extend}; }
  __device__ __forceinline__ u32 score(u8 a, u8 b) const { return (u32)(a == b ? match : mismatch); }
};

struct Cell {
  u32 h, e, f, direction;
};

// One cell from its corner's H, its pair's score, and E and F as they enter it.
//
// Directions compare the candidates with each other, never H with a candidate: of max(max(a, b), 0) == b the assembler
// of CUDA 12.9 and 13.0 makes, for sm_90, one VIMNMX.RELU whose predicate says that the maximum is a.
__device__ __forceinline__ Cell advance(u32 corner, u32 score, u32 e, u32 f, const Costs& costs) {
  Cell next{0u, e, f, 0u};
  u32 diagonal = corner;
  cell<Single32, kMode>(diagonal, score, next.h, next.e, next.f, costs);
  if constexpr (kDirections) {
    const int pair = (int)(corner + score), from_e = (int)e, from_f = (int)f;
    const u32 source = pair >= from_e && pair >= from_f ? kPair : from_f >= from_e ? kUp : kLeft;
    next.direction = kMode == kLocal && (int)next.h <= (int)costs.floor ? kStop : source;
    const int opened = (int)multiply_add(next.h, costs.one, costs.minus_first);
    if ((int)(e + costs.minus_extend) >= opened) next.direction |= kExtendsE;
    if ((int)(f + costs.minus_extend) >= opened) next.direction |= kExtendsF;
  }
  return next;
}

// E or F that enters a cell: what the neighbour handed on, or, with linear gaps, its H less one residue.
__device__ __forceinline__ u32 entering(u32 h, u32 gap, const Costs& costs) {
  return kAffine ? gap : h + costs.minus_first;
}

// Matrices of (rows + 1) x (columns + 1) in global memory, row by row.
struct RowMajor {
  u64 pitch;
  __device__ __forceinline__ explicit RowMajor(const Problem& pair) : pitch((u64)pair.columns + 1) {}
  __device__ __forceinline__ u64 at(int i, int j) const { return i * pitch + j; }
};

// The same cells stored by anti-diagonal: neighbours on a diagonal are neighbours in memory.
struct Skewed {
  u64 pitch;
  __device__ __forceinline__ explicit Skewed(const Problem& pair) : pitch((u64)pair.rows + 1) {}
  __device__ __forceinline__ u64 at(int i, int j) const { return (u64)(i + j) * pitch + i; }
};

#if SWSEARCH_SKEWED
using Layout = Skewed;
#else
using Layout = RowMajor;
#endif

// h, e and f may be read by another processor than wrote them: no pointer here may go through the read-only cache.
struct Matrix {
  int *h, *e, *f;  // e and f are null with linear gaps
  u8* directions;  // null without directions; rows + 1 by columns + 1 in every layout
  Layout layout;

  __device__ __forceinline__ void put(const Problem& pair, int i, int j, const Cell& made) const {
    const u64 here = layout.at(i, j);
    h[here] = (int)made.h;
    if constexpr (kAffine) {
      e[here] = (int)made.e;
      f[here] = (int)made.f;
    }
    if constexpr (kDirections) directions[(u64)i * (pair.columns + 1) + j] = (u8)made.direction;
  }

  // Compute cell (i, j) >= (1, 1) from its three neighbours in global memory.
  __device__ __forceinline__ void update(const Problem& pair, int i, int j) const {
    const u64 above = layout.at(i - 1, j), beside = layout.at(i, j - 1);
    const u32 e = kAffine ? (u32)e_at(beside) : entering((u32)h[beside], 0u, pair.costs);
    const u32 f = kAffine ? (u32)f_at(above) : entering((u32)h[above], 0u, pair.costs);
    const u32 corner = (u32)h[layout.at(i - 1, j - 1)];
    put(pair, i, j, advance(corner, pair.score(pair.query[i - 1], pair.subject[j - 1]), e, f, pair.costs));
  }
  __device__ __forceinline__ int e_at(u64 place) const { return kAffine ? e[place] : 0; }
  __device__ __forceinline__ int f_at(u64 place) const { return kAffine ? f[place] : 0; }

  // Row 0 and column 0: thread t of all sets place t of both.
  __device__ __forceinline__ void set_boundary(const Problem& pair, int t) const {
    const Boundary<kMode> boundary = pair.boundary();
    Cell made{(u32)boundary.at(t), (u32)boundary.gap_at(t), (u32)boundary.gap_at(t), 0u};
    if (t <= pair.columns) put(pair, 0, t, made);
    if (t <= pair.rows) put(pair, t, 0, made);
  }
};

// Rows of anti-diagonal d (the cells with i + j = d, i and j from 1).
__device__ __forceinline__ int first_row(const Problem& pair, int d) { return max(1, d - pair.columns); }
__device__ __forceinline__ int last_row(const Problem& pair, int d) { return min(pair.rows, d - 1); }
