// vector_sse41: SSE4.1.
// No include here, for the reason that vector.hpp gives.

constexpr int kVectorBytes = 16;
constexpr int kColumns = 4;

inline Vector<int8_t, 16> saturated_sum(Vector<int8_t, 16> a, Vector<int8_t, 16> b) {
  return {reinterpret_cast<Vector<int8_t, 16>::Native>(_mm_adds_epi8((__m128i)a.v, (__m128i)b.v))};
}
inline Vector<int16_t, 16> saturated_sum(Vector<int16_t, 16> a, Vector<int16_t, 16> b) {
  return {reinterpret_cast<Vector<int16_t, 16>::Native>(_mm_adds_epi16((__m128i)a.v, (__m128i)b.v))};
}

class Column {
 public:
  explicit Column(const uint8_t* codes) {
    for (int part = 0; part < 4; ++part) {
      codes_[part] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + 16 * part));
      upper_[part] = _mm_slli_epi16(codes_[part], 3);  // a code's bit 4 where the blend looks
    }
  }
  void look_up(const int8_t* row, int8_t* out) const {
    const __m128i* const halves = reinterpret_cast<const __m128i*>(row);
    const __m128i low = _mm_loadu_si128(halves), high = _mm_loadu_si128(halves + 1);
    for (int part = 0; part < 4; ++part) {
      const __m128i a = _mm_shuffle_epi8(low, codes_[part]), b = _mm_shuffle_epi8(high, codes_[part]);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 16 * part), _mm_blendv_epi8(a, b, upper_[part]));
    }
  }

 private:
  __m128i codes_[4], upper_[4];
};
