// portable_math: exp, log and erfc of many numbers, with the same last bit on every machine.
//
// The functions of C libraries differ in their last bit between processors. Additions, multiplications, divisions and
// square roots of doubles have one result (IEEE 754), so only these are used, in one order; setup.py compiles with
// -ffp-contract=off. A number's result does not depend on the others. swsearch/statistics/portable_math.py documents
// domains and errors.
#pragma once

#include <cstdint>

namespace swsearch {

enum class MathFunction { kExp, kExpm1, kLog, kLog1p, kErfc };

// The function of n numbers; in and out may be the same.
void compute(MathFunction function, const double* in, int64_t n, double* out);

}  // namespace swsearch
