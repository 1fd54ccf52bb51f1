// crc: the checksum of a database file.
#pragma once

#include <cstdint>

namespace swsearch {

// The CRC-32 of bytes, as zlib computes it.
uint32_t crc_32(const uint8_t* data, int64_t n);

}  // namespace swsearch
