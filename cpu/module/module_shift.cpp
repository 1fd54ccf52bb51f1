// module_shift: the binding that swsearch/engines/cpu/tracing.py calls.
#include <string>
#include <vector>

#include "codes.hpp"
#include "module/module.hpp"
#include "shift/shifted.hpp"

namespace swsearch {

namespace {

constexpr int64_t kReach = int64_t{1} << 28;  // REACH_LIMIT of swsearch/engines/cpu/tracing.py
constexpr int kMostThreads = 1024;            // each has tables of its own

// Whether no cell of a pair can leave 32 bits.
bool within_reach(const ManyShifted& many) {
  for (int64_t k = 0; k < 4 * many.count; k += 4) {
    const int64_t n = many.places[k + 1], m = many.places[k + 3];
    if (n >= kReach || m >= kReach || INT8_MAX * (n < m ? n : m) >= kReach) return false;
  }
  return true;
}

template <class T>
PyObject* bytes_of(const std::vector<T>& all) {
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(all.data()),
                                   static_cast<Py_ssize_t>(all.size() * sizeof(T)));
}

}  // namespace

PyObject* py_align_shifted(PyObject*, PyObject* arguments) {
  Buffer strands, subjects, places, scores;
  int open, extend, shift, threads;
  if (!PyArg_ParseTuple(arguments, "y*y*y*y*iiii", &strands.view, &subjects.view, &places.view, &scores.view, &open,
                        &extend, &shift, &threads)) {
    return nullptr;
  }
  ManyShifted many{strands.data(), subjects.data(), places.items<const int64_t>(), 0,
                   {scores.items<const int8_t>(), open, extend, shift},
                   threads < kMostThreads ? threads : kMostThreads, asked_to_stop};
  bool good = places_within(places, strands, subjects) && scores.size() == kCodes * kCodes && costs_fit(open, extend) &&
              costs_fit(shift, 0) && shift >= 1 && threads >= 1;
  if (good) {
    many.count = places.count<int64_t>() / 4;
    good = within_reach(many) && places_below(places, strands, subjects, kCodes);
  }
  if (!good) {
    PyErr_SetString(PyExc_ValueError, "expected codes below 32, a 32 x 32 table, costs that are not negative, and pairs "
                                      "that lie within their sequences and whose scores are below 2^28");
    return nullptr;
  }
  std::vector<ShiftedAlignment> found;
  if (!without_gil([&] { found = align_shifted(many); })) return nullptr;
  std::vector<int64_t> numbers, lengths;
  std::vector<char> operations;
  if (!without_gil([&] {
        for (const ShiftedAlignment& each : found) {
          numbers.insert(numbers.end(), {each.score, each.nucleotide, each.residue, static_cast<int64_t>(each.cigar.size())});
          for (const auto& [length, operation] : each.cigar) {
            lengths.push_back(length);
            operations.push_back(operation);
          }
        }
      })) {
    return nullptr;
  }
  return Py_BuildValue("(NNN)", bytes_of(numbers), bytes_of(lengths), bytes_of(operations));
}

PyObject* py_shifted_memory(PyObject*, PyObject* arguments) {
  long long n, m;
  if (!PyArg_ParseTuple(arguments, "LL", &n, &m)) return nullptr;
  if (n < 0 || m < 0 || n >= kReach || m >= kReach) {
    PyErr_SetString(PyExc_ValueError, "expected lengths from 0 to 2^28");
    return nullptr;
  }
  return PyLong_FromLongLong(shifted_memory(n, m));
}

}  // namespace swsearch
