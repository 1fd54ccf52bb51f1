// vector_x86: what all instruction sets of x86-64 have in common: a row's scores of 16 codes.
// No include here, for the reason that vector.hpp gives.

class ShortLetters {
 public:
  ShortLetters() = default;
  explicit ShortLetters(const uint8_t* codes) {
    const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
    // a permute gives 0 where the highest bit is set: for low where the code is above 15, for high where it is not
    low_ = _mm_add_epi8(all, _mm_set1_epi8(0x70));
    high_ = _mm_sub_epi8(all, _mm_set1_epi8(16));
  }

 private:
  friend class ShortRow;
  __m128i low_, high_;
};

class ShortRow {
 public:
  ShortRow() = default;
  explicit ShortRow(const int8_t* row) {
    low_ = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row));
    high_ = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 16));
  }
  Vector<int8_t, 16> of(const ShortLetters& letters) const {
    const __m128i a = _mm_shuffle_epi8(low_, letters.low_), b = _mm_shuffle_epi8(high_, letters.high_);
    return {reinterpret_cast<Vector<int8_t, 16>::Native>(_mm_or_si128(a, b))};
  }

 private:
  __m128i low_, high_;
};
