// module_math: the binding that swsearch/statistics/portable_math.py calls.
#include "module/module.hpp"
#include "statistics/portable_math.hpp"

namespace swsearch {

namespace {

constexpr int64_t kMany = 1024;  // numbers that take longer than to let go of the GIL

}  // namespace

PyObject* py_math(PyObject*, PyObject* arguments) {
  Buffer in, out;
  int function;
  if (!PyArg_ParseTuple(arguments, "iy*w*", &function, &in.view, &out.view)) return nullptr;
  const bool good = in.aligned<double>() && out.aligned<double>() && in.size() == out.size() && function >= 0 &&
                    function <= static_cast<int>(MathFunction::kErfc);
  if (!good) {
    PyErr_SetString(PyExc_ValueError, "expected a function's number, and doubles with room for as many");
    return nullptr;
  }
  const auto work = [&] {
    compute(static_cast<MathFunction>(function), in.items<const double>(), in.count<double>(), out.items<double>());
  };
  if (in.count<double>() < kMany) {
    work();
  } else if (!without_gil(work)) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

}  // namespace swsearch
