// portable_math: see portable_math.hpp.
#include "statistics/portable_math.hpp"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace swsearch {

namespace {

// The logarithm of 2 in two parts; whole numbers up to 2,048 times the first are exact.
constexpr double kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45, kPerLn2 = 0x1.71547652b82fep+0;

// Coefficients of (exp(r) - 1) / r; what is left out is below 1e-17 for r up to half the logarithm of 2.
constexpr double kFactorials[] = {
    1.0 / 1,     1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,       1.0 / 5040,
    1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
};

// Coefficients of the series of the inverse hyperbolic tangent.
constexpr double kOdd[] = {
    1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19,
    1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27, 1.0 / 29, 1.0 / 31, 1.0 / 33, 1.0 / 35,
};

// Chebyshev coefficients, over t from 0 to 1, of log(erfc(x) exp(x**2) / t) with t = 2 / (2 + x); computed at 64 nodes
// with 60 digits. The first counts half.
constexpr double kErfc[] = {
    -1.302653719781709434190447, 0.6419697923564902603042118, 0.01947647320418583631165012,
    -0.009561514786808631641871757, -0.0009465953444820368663005585, 0.0003668394978527614518728964,
    0.00004252332480690777164482612, -0.00002027857811253424315430556, -0.000001624290004647025513461911,
    0.000001303655835580523201809278, 1.562644172206614317827415e-8, -8.523809591492654252537838e-8,
    6.529054439098851496400499e-9, 5.059343495551468941798493e-9, -9.913641564930330867426303e-10,
    -2.273651222931835855731056e-10, 9.646791102015526801966084e-11, 2.394038083039114744702937e-12,
    -6.886027526497553398420379e-12, 8.944879273090725716744712e-13, 3.130921399342958078293875e-13,
    -1.127082236136725236596069e-13, 3.810905255189232055170269e-16, 7.1060976136092369877645e-15,
    -1.523028201457104304266652e-15, -9.457494571291234000480118e-17, 1.210237189224278992321719e-16,
};

// Horner's rule, the constant's coefficient first.
template <int n>
inline double polynomial(const double (&coefficients)[n], double x) {
  double total = coefficients[n - 1];
#pragma GCC unroll 32
  for (int k = n - 2; k >= 0; --k) total = total * x + coefficients[k];
  return total;
}

inline uint64_t bits_of(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline double double_of(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// 2 to the power of k, a whole number from -1,022 to 1,023 that is held as a double.
inline double power_of_2(double k) {
  return double_of(bits_of(k + (0x1.8p52 + 1023)) << 52);  // the sum's lowest bits are the exponent's
}

// x = k ln 2 + r, r at most half of ln 2 away from 0: exp(r) - 1, and 2 to the power of k as a product of two, so
// that results below the least normal number are rounded once.
struct Parts {
  double above, one, other;
};

inline Parts parts_of(double x) {
  // beyond these bounds the result is 0 or infinity
  const double raised = x < -800.0 ? -800.0 : x, clipped = raised > 800.0 ? 800.0 : raised;
  const double k = (clipped * kPerLn2 + 0x1.8p52) - 0x1.8p52;  // the nearest whole number
  const double rest = (clipped - k * kLn2High) - k * kLn2Low;
  const double half = (k * 0.5 + 0x1.8p52) - 0x1.8p52;
  return {polynomial(kFactorials, rest) * rest, power_of_2(half), power_of_2(k - half)};
}

inline double exp_of(double x) {
  const Parts parts = parts_of(x);
  return (1.0 + parts.above) * parts.one * parts.other;
}

inline double expm1_of(double x) {
  const Parts parts = parts_of(x);
  const double scale = parts.one * parts.other;
  return scale * parts.above + (scale - 1.0);
}

// log((1 + s) / (1 - s)) for s from -1/3 to 1/3.
inline double log_ratio(double s) {
  const double square = s * s;
  return 2.0 * s + 2.0 * s * (square * polynomial(kOdd, square));
}

inline double log_of(double x) {
  // below the least normal number the exponent's bits do not say it
  const bool small = x < 0x1p-1022;
  const double raised = x * 0x1p54, normal = small ? raised : x;
  const uint64_t bits = bits_of(normal);
  const double half_to_1 = double_of((bits & 0xFFFFFFFFFFFFF) | 0x3FE0000000000000);
  const double power = double_of((bits >> 52) | 0x4330000000000000) - (0x1p52 + 1022) - (small ? 54.0 : 0.0);
  const bool low = half_to_1 < 0.7071067811865476;
  const double doubled = 2.0 * half_to_1, fraction = low ? doubled : half_to_1;
  const double exponent = power - (low ? 1.0 : 0.0);
  return exponent * kLn2High + (log_ratio((fraction - 1.0) / (fraction + 1.0)) + exponent * kLn2Low);
}

inline double log1p_of(double x) { return log_ratio(x / (2.0 + x)); }

inline double erfc_of(double x) {
  const double distance = std::fabs(x), size = distance > 40.0 ? 40.0 : distance;  // 0 long before 40
  const double t = 2.0 / (2.0 + size), twice = 4.0 * t - 2.0;
  double one = 0.0, other = 0.0;
#pragma GCC unroll 32
  for (size_t k = std::extent_v<decltype(kErfc)> - 1; k > 0; --k) {  // Clenshaw's recurrence
    const double next = twice * one - other + kErfc[k];
    other = one;
    one = next;
  }
  const double above = 0.5 * (kErfc[0] + twice * one) - other;
  const double result = t * exp_of(above - size * size), mirrored = 2.0 - result;
  return x < 0.0 ? mirrored : result;
}

template <class Function>
void each(const double* in, int64_t n, double* out, Function function) {
  for (int64_t k = 0; k < n; ++k) out[k] = function(in[k]);
}

}  // namespace

void compute(MathFunction function, const double* in, int64_t n, double* out) {
  switch (function) {
    case MathFunction::kExp: return each(in, n, out, exp_of);
    case MathFunction::kExpm1: return each(in, n, out, expm1_of);
    case MathFunction::kLog: return each(in, n, out, log_of);
    case MathFunction::kLog1p: return each(in, n, out, log1p_of);
    case MathFunction::kErfc: return each(in, n, out, erfc_of);
  }
}

}  // namespace swsearch
