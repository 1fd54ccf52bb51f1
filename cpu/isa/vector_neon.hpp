// vector_neon: the vectors of 64-bit Arm.
// No include here, for the reason that vector.hpp gives.

constexpr int kVectorBytes = 16;
constexpr int kColumns = 8;

inline Vector<int8_t, 16> saturated_sum(Vector<int8_t, 16> a, Vector<int8_t, 16> b) {
  return {reinterpret_cast<Vector<int8_t, 16>::Native>(vqaddq_s8((int8x16_t)a.v, (int8x16_t)b.v))};
}
inline Vector<int16_t, 16> saturated_sum(Vector<int16_t, 16> a, Vector<int16_t, 16> b) {
  return {reinterpret_cast<Vector<int16_t, 16>::Native>(vqaddq_s16((int16x8_t)a.v, (int16x8_t)b.v))};
}

class Column {
 public:
  explicit Column(const uint8_t* codes) {
    for (int part = 0; part < 4; ++part) codes_[part] = vld1q_u8(codes + 16 * part);
  }
  void look_up(const int8_t* row, int8_t* out) const {
    const int8x16x2_t table = {{vld1q_s8(row), vld1q_s8(row + 16)}};
    for (int part = 0; part < 4; ++part) vst1q_s8(out + 16 * part, vqtbl2q_s8(table, codes_[part]));
  }

 private:
  uint8x16_t codes_[4];
};

class ShortLetters {
 public:
  ShortLetters() = default;
  explicit ShortLetters(const uint8_t* codes) : codes_(vld1q_u8(codes)) {}

 private:
  friend class ShortRow;
  uint8x16_t codes_;
};

class ShortRow {
 public:
  ShortRow() = default;
  explicit ShortRow(const int8_t* row) : row_{{vld1q_s8(row), vld1q_s8(row + 16)}} {}
  Vector<int8_t, 16> of(const ShortLetters& letters) const {
    return {reinterpret_cast<Vector<int8_t, 16>::Native>(vqtbl2q_s8(row_, letters.codes_))};
  }

 private:
  int8x16x2_t row_;
};
