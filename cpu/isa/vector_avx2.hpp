// vector_avx2: AVX2.
// No include here, for the reason that vector.hpp gives.

constexpr int kVectorBytes = 32;
constexpr int kColumns = 4;

inline Vector<int8_t, 32> saturated_sum(Vector<int8_t, 32> a, Vector<int8_t, 32> b) {
  return {reinterpret_cast<Vector<int8_t, 32>::Native>(_mm256_adds_epi8((__m256i)a.v, (__m256i)b.v))};
}
inline Vector<int16_t, 32> saturated_sum(Vector<int16_t, 32> a, Vector<int16_t, 32> b) {
  return {reinterpret_cast<Vector<int16_t, 32>::Native>(_mm256_adds_epi16((__m256i)a.v, (__m256i)b.v))};
}

class Column {
 public:
  explicit Column(const uint8_t* codes) {
    for (int half = 0; half < 2; ++half) {
      codes_[half] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + 32 * half));
      upper_[half] = _mm256_slli_epi16(codes_[half], 3);  // a code's bit 4 where the blend looks
    }
  }
  void look_up(const int8_t* row, int8_t* out) const {
    const __m128i* const halves = reinterpret_cast<const __m128i*>(row);
    const __m256i low = _mm256_broadcastsi128_si256(_mm_loadu_si128(halves));
    const __m256i high = _mm256_broadcastsi128_si256(_mm_loadu_si128(halves + 1));
    for (int half = 0; half < 2; ++half) {
      const __m256i a = _mm256_shuffle_epi8(low, codes_[half]), b = _mm256_shuffle_epi8(high, codes_[half]);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 32 * half), _mm256_blendv_epi8(a, b, upper_[half]));
    }
  }

 private:
  __m256i codes_[2], upper_[2];
};

template <>
class Letters<int8_t> {
 public:
  void load(const uint8_t* codes) {
    const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    low_ = _mm256_add_epi8(all, _mm256_set1_epi8(0x70));  // as in vector_x86.hpp
    high_ = _mm256_sub_epi8(all, _mm256_set1_epi8(16));
  }

 private:
  friend class RowScores<int8_t>;
  __m256i low_, high_;
};

template <>
class RowScores<int8_t> {
 public:
  void load(const int8_t* row) {
    const __m128i* const halves = reinterpret_cast<const __m128i*>(row);
    low_ = _mm256_broadcastsi128_si256(_mm_loadu_si128(halves));
    high_ = _mm256_broadcastsi128_si256(_mm_loadu_si128(halves + 1));
  }
  Vector<int8_t, 32> of(const Letters<int8_t>& letters) const {
    const __m256i a = _mm256_shuffle_epi8(low_, letters.low_), b = _mm256_shuffle_epi8(high_, letters.high_);
    return {reinterpret_cast<Vector<int8_t, 32>::Native>(_mm256_or_si256(a, b))};
  }

 private:
  __m256i low_, high_;
};
