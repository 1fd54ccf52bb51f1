// module_inclusion: the bindings that swsearch/pipeline/inclusion.py and swsearch/profiles/construction.py call.
#include "module/module.hpp"

#include <algorithm>

#include "profiles/inclusion.hpp"
#include "profiles/layout.hpp"

namespace swsearch {

namespace {

// What the three functions take first, as a tuple: starts in the query and in the pool, runs' offsets, lengths and
// operations.
struct RunArguments {
  Buffer query_starts, subject_starts, offsets, lengths, operations;
  Runs runs{};

  // False with Python's exception set where something is wrong; `fits` is still to be asked.
  bool read(PyObject* given) {
    if (!PyArg_ParseTuple(given, "y*y*y*y*y*", &query_starts.view, &subject_starts.view, &offsets.view, &lengths.view,
                          &operations.view)) {
      return false;
    }
    runs = {query_starts.items<const int64_t>(), subject_starts.items<const int64_t>(), offsets.items<const int64_t>(),
            lengths.items<const int64_t>(),      operations.data(),                     query_starts.count<int64_t>()};
    const bool whole = query_starts.aligned<int64_t>() && subject_starts.aligned<int64_t>() &&
                       offsets.aligned<int64_t>() && lengths.aligned<int64_t>() &&
                       subject_starts.count<int64_t>() == runs.count && offsets.count<int64_t>() == runs.count + 1 &&
                       lengths.count<int64_t>() == operations.size();
    const bool good = whole && runs.offsets[0] == 0 && runs.offsets[runs.count] == operations.size() &&
                      std::is_sorted(runs.offsets, runs.offsets + runs.count + 1);
    if (!good) PyErr_SetString(PyExc_ValueError, "expected starts and runs for each alignment");
    return good;
  }
};

// Do work without the GIL once the runs have been looked at. Null with Python's exception set where that fails.
template <class Work>
PyObject* done(const Runs& runs, int64_t query_length, int64_t n_residues, Work&& work) {
  bool fine = false;
  if (!without_gil([&] {
        fine = fits(runs, query_length, n_residues);
        if (fine) work();
      })) {
    return nullptr;
  }
  if (!fine) {
    PyErr_SetString(PyExc_ValueError, "expected runs of M, I and D within the sequences");
    return nullptr;
  }
  Py_RETURN_NONE;
}

}  // namespace

PyObject* py_trim_ends(PyObject*, PyObject* arguments) {
  PyObject* common = nullptr;
  Buffer scores, costs, subjects, numbers, offsets, lengths, operations;
  RunArguments given;
  long long min_score;
  if (!PyArg_ParseTuple(arguments, "O!y*y*y*Lw*w*w*w*", &PyTuple_Type, &common, &scores.view, &costs.view,
                        &subjects.view, &min_score, &numbers.view, &offsets.view, &lengths.view, &operations.view) ||
      !given.read(common)) {
    return nullptr;
  }
  const Runs& runs = given.runs;
  const int64_t rows = scores.size() / kCodes, n_runs = given.operations.size();
  const bool whole = numbers.aligned<int64_t>() && offsets.aligned<int64_t>() && lengths.aligned<int64_t>() &&
                     costs.aligned<int16_t>() && scores.size() == rows * kCodes && costs.count<int16_t>() == 4 * rows &&
                     numbers.count<int64_t>() == kTrimmed * runs.count && offsets.count<int64_t>() == runs.count + 1 &&
                     lengths.count<int64_t>() == n_runs && operations.size() == n_runs;
  if (!whole || !all_below(subjects, kCodes) || (rows == 0 && n_runs > 0)) {
    PyErr_SetString(PyExc_ValueError, "expected scores and costs of rows, codes below 32, and room for as many runs");
    return nullptr;
  }
  const Trim trim{runs, scores.items<const int8_t>(), costs.items<const int16_t>(), subjects.data(), min_score};
  const Trimmed trimmed{numbers.items<int64_t>(), offsets.items<int64_t>(), lengths.items<int64_t>(),
                        operations.items<uint8_t>()};
  return done(runs, rows, subjects.size(), [&] { trim_ends(trim, trimmed); });
}

PyObject* py_select_hits(PyObject*, PyObject* arguments) {
  PyObject* common = nullptr;
  Buffer query, subjects, kinds, flags;
  RunArguments given;
  long long min_pairs;
  double min_percent, low_complexity, coiled_coil;
  if (!PyArg_ParseTuple(arguments, "O!y*y*y*Ldddw*", &PyTuple_Type, &common, &query.view, &subjects.view, &kinds.view,
                        &min_pairs, &min_percent, &low_complexity, &coiled_coil, &flags.view) ||
      !given.read(common)) {
    return nullptr;
  }
  if (kinds.size() != 256 || flags.size() != given.runs.count) {
    PyErr_SetString(PyExc_ValueError, "expected kinds of 256 codes, and room for a flag of each alignment");
    return nullptr;
  }
  const Selection selection{given.runs, query.data(), query.size(),   subjects.data(), kinds.data(),
                            min_pairs,  min_percent,  low_complexity, coiled_coil};
  return done(given.runs, query.size(), subjects.size(), [&] { select_hits(selection, flags.items<uint8_t>()); });
}

PyObject* py_lay_out(PyObject*, PyObject* arguments) {
  PyObject* common = nullptr;
  Buffer residues, columns, spans, insertions, inserted;
  RunArguments given;
  long long query_length;
  if (!PyArg_ParseTuple(arguments, "O!y*Lw*w*w*w*", &PyTuple_Type, &common, &residues.view, &query_length,
                        &columns.view, &spans.view, &insertions.view, &inserted.view) ||
      !given.read(common)) {
    return nullptr;
  }
  const int64_t count = given.runs.count;
  const Inserted needed = inserted_in(given.runs);
  const bool whole = spans.aligned<int64_t>() && insertions.aligned<int64_t>() && query_length >= 0 &&
                     (count == 0 || query_length <= columns.size() / count) && columns.size() == count * query_length &&
                     spans.count<int64_t>() == 2 * count && insertions.count<int64_t>() == 4 * needed.insertions &&
                     inserted.size() == needed.residues;
  if (!whole) {
    PyErr_SetString(PyExc_ValueError, "expected room for columns, spans and insertions");
    return nullptr;
  }
  const Layout layout{columns.items<uint8_t>(), spans.items<int64_t>(), insertions.items<int64_t>(),
                      inserted.items<uint8_t>()};
  return done(given.runs, query_length, residues.size(),
              [&] { lay_out(given.runs, residues.data(), query_length, layout); });
}

}  // namespace swsearch
