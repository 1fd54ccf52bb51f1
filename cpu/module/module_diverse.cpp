// module_diverse: the binding that swsearch/profiles/row_filter.py calls.
#include "module/module.hpp"
#include "profiles/diverse.hpp"

namespace swsearch {

PyObject* py_select_diverse(PyObject*, PyObject* arguments) {
  Buffer columns, levels, entered;
  DiverseRows asked;
  long long n_columns, most;
  int gap;
  if (!PyArg_ParseTuple(arguments, "y*Liy*Lw*", &columns.view, &n_columns, &gap, &levels.view, &most, &entered.view)) {
    return nullptr;
  }
  asked.columns = columns.data();
  asked.n = entered.size();
  asked.n_columns = n_columns;
  asked.gap = static_cast<uint8_t>(gap);
  asked.levels = levels.items<const double>();
  asked.n_levels = levels.count<double>();
  asked.most = most;
  const bool good = n_columns >= 0 && n_columns <= INT32_MAX && columns.size() == asked.n * n_columns && gap >= 0 &&
                    gap <= UINT8_MAX && levels.aligned<double>();
  if (!good) {
    PyErr_SetString(PyExc_ValueError, "expected rows of as many columns, and levels");
    return nullptr;
  }
  if (!without_gil([&] { select(asked, entered.items<uint8_t>()); })) return nullptr;
  Py_RETURN_NONE;
}

}  // namespace swsearch
