// vector: lanes of signed integers, as the compiler's own vector types have them (gcc and clang turn these operators
// into single instructions of whatever target is in force), and what the header of an instruction set adds.
//
// An instruction set's header, read right after this one, defines
//   kVectorBytes   bytes of a vector;
//   kColumns       columns that are computed at a time: as many as the registers hold, F and H of each;
//   saturated_sum  of two vectors of 8-bit lanes, and of 16-bit lanes;
//   Column         64 codes (below 32) of a block's column; look_up writes a row's score of each code;
//   ShortLetters   16 codes, and ShortRow a row whose scores it returns of them, as a vector; where a vector is longer,
//                  Letters and RowScores for lanes of 8 bits likewise (scan_kernel.hpp has them for other lanes).
//
// No include here: read inside a namespace and under a target.

template <class T, int kBytes>
struct Vector {
  typedef T Value;
  typedef T Native __attribute__((vector_size(kBytes)));
  // as it lies anywhere in memory; with memcpy gcc takes 16 bytes through two general registers
  typedef T Stored __attribute__((vector_size(kBytes), aligned(1), may_alias));
  static constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  Native v;

  static Vector load(const T* from) { return {*reinterpret_cast<const Stored*>(from)}; }
  void store(T* to) const { *reinterpret_cast<Stored*>(to) = v; }
  static Vector all(T value) { return {Native{} + value}; }
};

template <class T, int kBytes>
inline Vector<T, kBytes> add(Vector<T, kBytes> a, Vector<T, kBytes> b) {
  return {a.v + b.v};
}
template <class T, int kBytes>
inline Vector<T, kBytes> sub(Vector<T, kBytes> a, Vector<T, kBytes> b) {
  return {a.v - b.v};
}
template <class T, int kBytes>
inline Vector<T, kBytes> max(Vector<T, kBytes> a, Vector<T, kBytes> b) {
  return {a.v > b.v ? a.v : b.v};
}
template <class T, int kBytes>
inline Vector<T, kBytes> min(Vector<T, kBytes> a, Vector<T, kBytes> b) {
  return {a.v < b.v ? a.v : b.v};
}
template <int kBytes>
inline Vector<int32_t, kBytes> saturated_sum(Vector<int32_t, kBytes> a, Vector<int32_t, kBytes> b) {
  return {a.v + b.v};  // 32-bit lanes are only used where no sum leaves their range
}

// Codes of a vector's lanes, and a row's scores of them.
template <class T>
class Letters;
template <class T>
class RowScores;
