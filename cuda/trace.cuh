// trace.cuh: follow the directions that strips wrote, from a cell back to where the alignment or the rectangle
// begins. One warp; all lanes take the same steps, and fetch the neighbourhood together.
#pragma once

#include "strip.cuh"

// States and operations of the way back.
constexpr u32 kStop = 0, kPair = 1, kFromF = 2, kFromE = 3;

// Where the way back stands: rows and columns count from 1 in the rectangle, 0 is outside. In state kPair nothing is
// open; in kFromF (kFromE) the residue below (on the right) was taken as part of a gap, and the cell says whether the
// gap goes on.
struct Position {
  int row, column;
  u32 state;
};

// Runs of equal operations, last one first: length * 4 + operation, where an operation is kPair, kFromF (a query
// residue opposite a gap) or kFromE (a subject residue opposite a gap).
struct Runs {
  u32* to;
  int n;
  u32 operation, length;
  __device__ __forceinline__ void push(u32 op, u32 times = 1) {
    if (op != operation) flush();
    operation = op, length += times;
  }
  __device__ __forceinline__ void flush() {
    if (length > 0) {
      if (threadIdx.x % kWarpLanes == 0) to[n] = length * 4 + operation;
      ++n;
    }
    length = 0;
  }
};

constexpr int kTraceGroups = 4;  // groups of eight rows that are looked at together, 32 columns of each
constexpr int kTraceWords = kTraceGroups * kWarpLanes;

// Returns where the rectangle was left (row or column 0), or where a local alignment begins (state kStop).
__device__ __forceinline__ Position trace(const u32* directions, int n, Position at, Runs& runs, u32* shared) {
  const int lane = threadIdx.x % kWarpLanes;
  const int lines = direction_lines(n);
  while (at.row > 0 && at.column > 0 && at.state != kStop) {
    // a diagonal way leaves four groups of eight rows and 32 columns at the same time
    const int group = (at.row - 1) / kDirectionRows, column = at.column - 1;
    __syncwarp();
#pragma unroll
    for (int g = 0; g < kTraceGroups; ++g) {
      const int c = column - lane, place = group - g;
      if (c >= 0 && place >= 0) {
        const int owner = place % kWarpLanes, strip = place / kWarpLanes;
        const size_t line = (size_t)strip * lines + c + owner;
        shared[g * kWarpLanes + lane] = __ldcg(directions + line * kWarpLanes + owner);
      }
    }
    __syncwarp();
    // as many equal steps at a time as there are lanes: each looks at the cell that it would be at
    for (;;) {
      const int row = at.row - (at.state == kFromE ? 0 : lane), col = at.column - (at.state == kFromF ? 0 : lane);
      const int g = group - (row - 1) / kDirectionRows, c = column - (col - 1);
      const bool inside = row > 0 && col > 0 && g < kTraceGroups && c < kWarpLanes;
      const int shift = 4 * (kDirectionRows - 1 - (row - 1) % kDirectionRows);
      const u32 bits = inside ? shared[g * kWarpLanes + c] >> shift : 0;
      const u32 from = bits & kUnderPair ? (bits & kUnderF ? kFromE : kFromF) : (bits & kUnderF ? kPair : kStop);
      const u32 opens = at.state == kFromF ? kOpensF : kOpensE;
      const bool goes_on = inside && (at.state == kPair ? from == kPair : (bits & opens) == 0);
      const u32 ends = __ballot_sync(kAllLanes, !goes_on);
      const int steps = ends == 0 ? kWarpLanes : __ffs((int)ends) - 1;
      if (steps > 0) {
        runs.push(at.state, (u32)steps);
        at.row -= at.state == kFromE ? 0 : steps;
        at.column -= at.state == kFromF ? 0 : steps;
        continue;
      }
      if (!__shfl_sync(kAllLanes, (int)inside, 0)) break;  // of the rectangle, or of what was fetched
      if (at.state != kPair) {
        at.state = kPair;  // the gap was opened here
        continue;
      }
      at.state = __shfl_sync(kAllLanes, from, 0);
      if (at.state == kStop) break;
      runs.push(at.state);
      at.row -= at.state == kFromF;
      at.column -= at.state == kFromE;
    }
  }
  return at;
}
