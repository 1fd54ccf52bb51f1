// module_profiles: the bindings that swsearch/profiles/ calls.
#include <algorithm>

#include "module/module.hpp"
#include "profiles/cells.hpp"
#include "profiles/contexts.hpp"
#include "profiles/purge.hpp"
#include "profiles/diverse.hpp"
#include "profiles/weights.hpp"

namespace swsearch {

PyObject* py_observe(PyObject*, PyObject* arguments) {
  Buffer columns, table, background, weights, observations, n_present;
  long long n_rows, max_gap_length, min_columns, max_columns;
  double identity;
  if (!PyArg_ParseTuple(arguments, "y*Ly*y*dLLLw*w*w*", &columns.view, &n_rows, &table.view, &background.view,
                        &identity, &max_gap_length, &min_columns, &max_columns, &weights.view, &observations.view,
                        &n_present.view)) {
    return nullptr;
  }
  const int64_t n_columns = n_rows >= 1 ? columns.size() / n_rows : 0;
  const bool good = n_rows >= 1 && columns.size() % n_rows == 0 && table.size() == 256 && all_below(table, kAbsent) &&
                    background.aligned<double>() && background.count<double>() == kAminoAcids && identity > 0 &&
                    max_gap_length >= 0 && min_columns >= 1 && max_columns >= min_columns &&
                    weights.aligned<double>() && weights.count<double>() == kAbsent * n_columns &&
                    observations.aligned<double>() && observations.count<double>() == n_columns &&
                    n_present.aligned<int64_t>() && n_present.count<int64_t>() == n_columns &&
                    std::all_of(columns.data(), columns.data() + n_columns,
                                [&](uint8_t code) { return table.data()[code] != kInnerGap; });
  if (!good) {
    PyErr_SetString(PyExc_ValueError, "expected an alignment whose first row, the query, has no gaps");
    return nullptr;
  }
  int64_t n_kept = 0;
  const AskToStop asked = asked_to_stop;
  const bool fine = without_gil([&] {
    Patience patience(asked);
    Cells kept{0, n_columns, {}};
    {
      const Cells cells = cells_of(columns.data(), n_rows, n_columns, table.data(), max_gap_length);
      for (const int64_t row : unique_rows(cells, identity, patience)) {
        kept.all.insert(kept.all.end(), cells.row(row), cells.row(row) + n_columns);
        ++kept.n_rows;
      }
    }
    n_kept = kept.n_rows;
    observe(kept, {std::min<int64_t>(min_columns, n_columns), std::min<int64_t>(max_columns, n_columns)},
            background.items<const double>(),
            {weights.items<double>(), observations.items<double>(), n_present.items<int64_t>()}, patience);
  });
  return fine ? PyLong_FromLongLong(n_kept) : nullptr;
}

PyObject* py_predict_contexts(PyObject*, PyObject* arguments) {
  Buffer shares, weights, bias, frequencies, exponentials, sums;
  if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*w*", &shares.view, &weights.view, &bias.view, &frequencies.view,
                        &exponentials.view, &sums.view)) {
    return nullptr;
  }
  const Contexts contexts{bias.count<int16_t>(), weights.items<const int8_t>(), bias.items<const int16_t>(),
                          frequencies.items<const double>(), exponentials.items<const double>(),
                          exponentials.count<double>()};
  const int64_t n_columns = shares.size() / kAminoAcids;
  const bool good = shares.size() == n_columns * kAminoAcids && bias.aligned<int16_t>() && contexts.n_contexts >= 1 &&
                    weights.size() == kContextWidth * kAminoAcids * contexts.n_contexts &&
                    frequencies.aligned<double>() &&
                    frequencies.count<double>() == contexts.n_contexts * kAminoAcids &&
                    exponentials.aligned<double>() && contexts.n_exponentials >= 1 && sums.aligned<double>() &&
                    sums.count<double>() == shares.size();
  if (!good) {
    PyErr_SetString(PyExc_ValueError, "expected shares of 20 amino acids in columns, and contexts of one number");
    return nullptr;
  }
  const AskToStop asked = asked_to_stop;
  const bool fine = without_gil([&] {
    Patience patience(asked);
    predict(contexts, shares.data(), n_columns, sums.items<double>(), patience);
  });
  if (!fine) return nullptr;
  Py_RETURN_NONE;
}

PyObject* py_select_diverse(PyObject*, PyObject* arguments) {
  Buffer columns, levels, entered;
  DiverseRows asked;
  long long n_columns, most, diff;
  int gap;
  if (!PyArg_ParseTuple(arguments, "y*Liy*LLw*", &columns.view, &n_columns, &gap, &levels.view, &most, &diff,
                        &entered.view)) {
    return nullptr;
  }
  asked.columns = columns.data();
  asked.n = entered.size();
  asked.n_columns = n_columns;
  asked.gap = static_cast<uint8_t>(gap);
  asked.levels = levels.items<const double>();
  asked.n_levels = levels.count<double>();
  asked.most = most;
  asked.diff = diff;
  const bool good = n_columns >= 0 && n_columns <= INT32_MAX && columns.size() == asked.n * n_columns && gap >= 0 &&
                    gap <= UINT8_MAX && diff >= 0 && levels.aligned<double>();
  if (!good) {
    PyErr_SetString(PyExc_ValueError, "expected rows of as many columns, and levels");
    return nullptr;
  }
  const AskToStop stop = asked_to_stop;
  const bool fine = without_gil([&] {
    Patience patience(stop);
    select(asked, entered.items<uint8_t>(), patience);
  });
  if (!fine) return nullptr;
  Py_RETURN_NONE;
}

}  // namespace swsearch
