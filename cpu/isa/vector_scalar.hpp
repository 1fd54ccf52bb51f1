// vector_scalar: whatever the compiler aims at by default; without intrinsics.
// No include here, for the reason that vector.hpp gives.

constexpr int kVectorBytes = 16;
constexpr int kColumns = 4;

template <class T>
inline Vector<T, 16> saturated(Vector<T, 16> a, Vector<T, 16> b) {
  // overflowed where both have the sign that their sum has not; the limit has theirs
  const Vector<T, 16> sum = {a.v + b.v};
  const auto overflowed = ((a.v ^ sum.v) & (b.v ^ sum.v)) < 0;
  const auto limit = (a.v >> (8 * sizeof(T) - 1)) ^ static_cast<T>((1u << (8 * sizeof(T) - 1)) - 1);
  return {overflowed ? limit : sum.v};
}
inline Vector<int8_t, 16> saturated_sum(Vector<int8_t, 16> a, Vector<int8_t, 16> b) { return saturated(a, b); }
inline Vector<int16_t, 16> saturated_sum(Vector<int16_t, 16> a, Vector<int16_t, 16> b) { return saturated(a, b); }

class Column {
 public:
  explicit Column(const uint8_t* codes) : codes_(codes) {}
  void look_up(const int8_t* row, int8_t* out) const {
    for (int k = 0; k < 64; ++k) out[k] = row[codes_[k] & 31];
  }

 private:
  const uint8_t* codes_;
};

class ShortLetters {
 public:
  ShortLetters() = default;
  explicit ShortLetters(const uint8_t* codes) {
    for (int k = 0; k < 16; ++k) codes_[k] = codes[k] & 31;
  }

 private:
  friend class ShortRow;
  uint8_t codes_[16];
};

class ShortRow {
 public:
  ShortRow() = default;
  explicit ShortRow(const int8_t* row) : row_(row) {}
  Vector<int8_t, 16> of(const ShortLetters& letters) const {
    int8_t found[16];
    for (int k = 0; k < 16; ++k) found[k] = row_[letters.codes_[k]];
    return Vector<int8_t, 16>::load(found);
  }

 private:
  const int8_t* row_;
};
