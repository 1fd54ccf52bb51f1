// shifted: alignments of strands of DNA with proteins, with frame shifts.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "interruption.hpp"

namespace swsearch {

// A strand and a protein.
struct ShiftedPair {
  const uint8_t* codons;  // amino acids of the codons that begin at each nucleotide but the last two
  int64_t n;              // codons
  const uint8_t* subject;
  int64_t m;
};

struct ShiftCosts {
  const int8_t* scores;  // kCodes x kCodes
  int32_t open, extend, shift;  // a gap of k costs open + k * extend
};

struct ShiftedAlignment {
  int64_t score = 0, nucleotide = 0, residue = 0;  // where the first operation begins
  std::vector<std::pair<int64_t, char>> cigar;     // M, I, D, and F and R as shift_reference.py has them
};

struct ManyShifted {
  const uint8_t* strands;
  const uint8_t* subjects;
  const int64_t* places;  // four per pair: where its codons begin, how many they are, and so for its subject
  int64_t count;
  ShiftCosts costs;
  int threads;
  AskToStop interrupted;  // of the calling thread alone
};

// Bytes that aligning a pair takes.
int64_t shifted_memory(int64_t n, int64_t m);

// One per pair, in their order; threads take the largest pair that is left. Throws Interrupted, bad_alloc.
std::vector<ShiftedAlignment> align_shifted(const ManyShifted& many);

}  // namespace swsearch
