// crc: eight bytes at a time by tables, or 64 by carry-less products where the processor has them.
#include "store/crc.hpp"

#include <cstring>

#include "isa/instructions.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#define SWSEARCH_PRODUCTS __attribute__((target("pclmul,sse4.1")))
#endif

namespace swsearch {

namespace {

constexpr uint32_t kPolynomial = 0xEDB88320u;

struct Tables {
  uint32_t of[8][256];
  constexpr Tables() : of() {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      of[0][byte] = byte;
      for (int bit = 0; bit < 8; ++bit) of[0][byte] = of[0][byte] >> 1 ^ (of[0][byte] & 1 ? kPolynomial : 0);
    }
    for (int k = 1; k < 8; ++k) {
      for (int byte = 0; byte < 256; ++byte) of[k][byte] = of[k - 1][byte] >> 8 ^ of[0][of[k - 1][byte] & 255];
    }
  }
};
constexpr Tables kTables;

uint32_t by_tables(uint32_t crc, const uint8_t* data, int64_t n) {
  const auto& t = kTables.of;
  for (; n >= 8; n -= 8, data += 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    word ^= crc;
    crc = t[7][word & 255] ^ t[6][word >> 8 & 255] ^ t[5][word >> 16 & 255] ^ t[4][word >> 24 & 255] ^
          t[3][word >> 32 & 255] ^ t[2][word >> 40 & 255] ^ t[1][word >> 48 & 255] ^ t[0][word >> 56];
  }
  for (; n > 0; --n, ++data) crc = crc >> 8 ^ t[0][(crc ^ *data) & 255];
  return crc;
}

#if defined(__x86_64__)
SWSEARCH_PRODUCTS __m128i load(const uint8_t* data) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data)); }

// The remainder moved on by as many bits as the two constants stand for, and the next 16 bytes added.
SWSEARCH_PRODUCTS __m128i fold(__m128i rest, __m128i constants, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(rest, constants, 0x00), high = _mm_clmulepi64_si128(rest, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// At least 64 bytes, a multiple of 16. The constants are powers of x modulo the polynomial, bits reversed: Gopal and
// others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009.
SWSEARCH_PRODUCTS uint32_t by_products(uint32_t crc, const uint8_t* data, int64_t n) {
  const __m128i by_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4), by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
  const __m128i by_8 = _mm_set_epi64x(0, 0x0163cd6124), polynomial = _mm_set_epi64x(0x01f7011641, 0x01db710641);
  __m128i rests[4];
  for (int k = 0; k < 4; ++k) rests[k] = load(data + 16 * k);
  rests[0] = _mm_xor_si128(rests[0], _mm_cvtsi32_si128(static_cast<int>(crc)));
  for (data += 64, n -= 64; n >= 64; data += 64, n -= 64) {
    for (int k = 0; k < 4; ++k) rests[k] = fold(rests[k], by_64, load(data + 16 * k));
  }
  __m128i rest = rests[0];
  for (int k = 1; k < 4; ++k) rest = fold(rest, by_16, rests[k]);
  for (; n >= 16; data += 16, n -= 16) rest = fold(rest, by_16, load(data));
  const __m128i even = _mm_setr_epi32(-1, 0, -1, 0);
  rest = _mm_xor_si128(_mm_srli_si128(rest, 8), _mm_clmulepi64_si128(rest, by_16, 0x10));
  rest = _mm_xor_si128(_mm_srli_si128(rest, 4), _mm_clmulepi64_si128(_mm_and_si128(rest, even), by_8, 0x00));
  __m128i whole = _mm_clmulepi64_si128(_mm_and_si128(rest, even), polynomial, 0x10);
  whole = _mm_clmulepi64_si128(_mm_and_si128(whole, even), polynomial, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(rest, whole), 1));
}
#endif

}  // namespace

uint32_t crc_32(const uint8_t* data, int64_t n) {
  uint32_t crc = ~uint32_t{0};
#if defined(__x86_64__)
  if (n >= 64 && has_carryless_products()) {
    const int64_t most = n / 16 * 16;
    crc = by_products(crc, data, most);
    data += most;
    n -= most;
  }
#endif
  return ~by_tables(crc, data, n);
}

}  // namespace swsearch
