// ranges: bytes of an array of a database file, read and compared with their checksums.
#pragma once

#include <cstdint>
#include <vector>

#include "interruption.hpp"

namespace swsearch {

// Ranges of an array that stands in a file from `at` on and has `size` bytes. Each `piece` bytes of it, the last
// perhaps fewer, have a checksum. Range k is every `step`th byte from begins[k] on; in `out` it takes the bytes from
// offsets[k] to offsets[k + 1].
struct Ranges {
  int file;
  int64_t at, size, piece;
  const uint32_t* sums;
  const int64_t *begins, *offsets;
  int64_t count, step, threads;
  uint8_t* out;
  AskToStop interrupted;
};

// Whether all ranges lie within the array and the output, which has `room` bytes; `n_sums` checksums are there.
bool fits(const Ranges& ranges, int64_t n_sums, int64_t room);

// What was found on reading. Where `wanted` is above 0, so many bytes from `at` on, a place in the file, could not be
// read: because of `error`, a value of errno, or, if that is 0, because the file ends there.
struct Checked {
  std::vector<int64_t> broken;  // pieces with another checksum, ascending
  int64_t at = 0, wanted = 0;
  int error = 0;
};

// Read ranges, each piece once; no other piece than those with a byte of them. Throws Interrupted, and bad_alloc.
Checked read(const Ranges& ranges);

}  // namespace swsearch
