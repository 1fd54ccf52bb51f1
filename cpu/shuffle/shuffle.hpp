// shuffle: copies of sequences with the residues of each window in random order, laid out as blocks for a search.
//
// A copy follows from the sequence's own codes and the copy's number alone, on every machine: the generator is
// splitmix64 (Steele, Lea and Flood, OOPSLA 2014), started with the FNV-1a hash of the codes, and a window is shuffled
// by Fisher and Yates' method. The copy numbered kReversed is the sequence backwards, kUnchanged the sequence itself.
// tests/support/shuffled.py states the same in Python.
#pragma once

#include <cstdint>
#include <vector>

namespace swsearch {

constexpr int32_t kReversed = -1, kUnchanged = -2;

struct Shuffle {
  const uint8_t* codes;           // the sequences, one after the other
  const int64_t* offsets;         // of each sequence in `codes`, and the end of the last
  const int64_t* sequences;       // of each lane: which sequence
  const int32_t* copies;          // of each lane: which copy of it
  int64_t n_lanes;
  const int64_t* column_offsets;  // of each block of 64 lanes, and the end of the last
  int64_t window;                 // residues
  int threads;
  uint8_t* residues;              // written: columns of 64 lanes
};

// Shuffle every lane's copy into its place.
void run(const Shuffle& shuffle);

// One block: `lanes` lanes, at most 64, of these sequences and copies, in columns that hold the longest. `held` is
// memory to work in.
void shuffle_block(const Shuffle& shuffle, const int64_t* sequences, const int32_t* copies, int64_t lanes,
                   int64_t columns, uint8_t* out, std::vector<uint8_t>& held);

}  // namespace swsearch
