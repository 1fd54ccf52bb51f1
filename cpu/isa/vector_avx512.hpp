// vector_avx512: AVX-512BW, and byte permutes over whole vectors where there is VBMI (SWSEARCH_VBMI).
// No include here, for the reason that vector.hpp gives.

constexpr int kVectorBytes = 64;
constexpr int kColumns = 8;

inline Vector<int8_t, 64> saturated_sum(Vector<int8_t, 64> a, Vector<int8_t, 64> b) {
  return {reinterpret_cast<Vector<int8_t, 64>::Native>(_mm512_adds_epi8((__m512i)a.v, (__m512i)b.v))};
}
inline Vector<int16_t, 64> saturated_sum(Vector<int16_t, 64> a, Vector<int16_t, 64> b) {
  return {reinterpret_cast<Vector<int16_t, 64>::Native>(_mm512_adds_epi16((__m512i)a.v, (__m512i)b.v))};
}

// The masked forms, with every lane on, are the same instructions; gcc 12 warns of its own header's other ones.
constexpr __mmask64 kAll = ~__mmask64{0};

class Column {
 public:
  explicit Column(const uint8_t* codes) : codes_(_mm512_loadu_si512(codes)) {}
  void look_up(const int8_t* row, int8_t* out) const {
    const __m256i table = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
#ifdef SWSEARCH_VBMI
    const __m512i found = _mm512_maskz_permutexvar_epi8(kAll, codes_, _mm512_castsi256_si512(table));
#else
    const __m512i low = _mm512_maskz_broadcast_i32x4(0xFFFF, _mm256_castsi256_si128(table));
    const __m512i high = _mm512_maskz_broadcast_i32x4(0xFFFF, _mm256_extracti128_si256(table, 1));
    const __mmask64 upper = _mm512_test_epi8_mask(codes_, _mm512_set1_epi8(16));
    const __m512i found = _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(low, codes_), upper, high, codes_);
#endif
    _mm512_storeu_si512(out, found);
  }

 private:
  __m512i codes_;
};

template <>
class Letters<int8_t> {
 public:
  void load(const uint8_t* codes) {
    codes_ = _mm512_loadu_si512(codes);
#ifndef SWSEARCH_VBMI
    upper_ = _mm512_test_epi8_mask(codes_, _mm512_set1_epi8(16));
#endif
  }

 private:
  friend class RowScores<int8_t>;
  __m512i codes_;
#ifndef SWSEARCH_VBMI
  __mmask64 upper_;
#endif
};

template <>
class RowScores<int8_t> {
 public:
  void load(const int8_t* row) {
    const __m256i table = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
#ifdef SWSEARCH_VBMI
    row_ = _mm512_castsi256_si512(table);
#else
    low_ = _mm512_maskz_broadcast_i32x4(0xFFFF, _mm256_castsi256_si128(table));
    high_ = _mm512_maskz_broadcast_i32x4(0xFFFF, _mm256_extracti128_si256(table, 1));
#endif
  }
  Vector<int8_t, 64> of(const Letters<int8_t>& letters) const {
#ifdef SWSEARCH_VBMI
    const __m512i found = _mm512_maskz_permutexvar_epi8(kAll, letters.codes_, row_);
#else
    const __m512i low = _mm512_shuffle_epi8(low_, letters.codes_);
    const __m512i found = _mm512_mask_shuffle_epi8(low, letters.upper_, high_, letters.codes_);
#endif
    return {reinterpret_cast<Vector<int8_t, 64>::Native>(found)};
  }

 private:
#ifdef SWSEARCH_VBMI
  __m512i row_;
#else
  __m512i low_, high_;
#endif
};

// A row of 16-bit scores fills a vector, and one permute looks it up.
template <>
class Letters<int16_t> {
 public:
  void load(const uint8_t* codes) {
    codes_ = _mm512_maskz_cvtepu8_epi16(~__mmask32{0}, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)));
  }

 private:
  friend class RowScores<int16_t>;
  __m512i codes_;
};

template <>
class RowScores<int16_t> {
 public:
  void load(const int8_t* row) {
    row_ = _mm512_maskz_cvtepi8_epi16(~__mmask32{0}, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row)));
  }
  Vector<int16_t, 64> of(const Letters<int16_t>& letters) const {
    const __m512i found = _mm512_maskz_permutexvar_epi16(~__mmask32{0}, letters.codes_, row_);
    return {reinterpret_cast<Vector<int16_t, 64>::Native>(found)};
  }

 private:
  __m512i row_;
};
