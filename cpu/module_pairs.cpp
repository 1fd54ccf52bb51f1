// module_pairs: the bindings that swsearch/native.py calls.
#include "module.hpp"
#include "problem.hpp"

namespace swsearch {

namespace {

PyObject* cigar_of(const Aligned& aligned) {
  PyObject* cigar = PyTuple_New(static_cast<Py_ssize_t>(aligned.cigar.size()));
  if (cigar == nullptr) return nullptr;
  Py_ssize_t place = 0;
  for (const auto& [length, operation] : aligned.cigar) {
    PyObject* run = Py_BuildValue("(LC)", static_cast<long long>(length), static_cast<int>(operation));
    if (run == nullptr || PyTuple_SetItem(cigar, place++, run) != 0) {
      Py_DECREF(cigar);
      return nullptr;
    }
  }
  return cigar;
}

PyObject* result_of(const Aligned& aligned) {
  PyObject* cigar = cigar_of(aligned);
  if (cigar == nullptr) return nullptr;
  return Py_BuildValue("(LLLNLi)", static_cast<long long>(aligned.score), static_cast<long long>(aligned.i),
                       static_cast<long long>(aligned.j), cigar, static_cast<long long>(aligned.cells), aligned.passes);
}

}  // namespace

PyObject* py_align(PyObject*, PyObject* arguments) {
  Buffer query, subject, scores;
  int max_score, open, extend, local, ends, with_path, threads, tile;
  long long memory, beam;
  const char* name;
  if (!PyArg_ParseTuple(arguments, "y*y*y*iiiiiiLiiLs", &query.view, &subject.view, &scores.view, &max_score, &open,
                        &extend, &local, &ends, &with_path, &memory, &threads, &tile, &beam, &name)) {
    return nullptr;
  }
  if (scores.size() != kCodes * kCodes || !all_below(query, kCodes) || !all_below(subject, kCodes) || threads < 1 ||
      tile < 0 || tile > 4096 || open < 0 || extend < 0 || max_score < 0) {
    PyErr_SetString(PyExc_ValueError, "expected codes below 32, a 32 x 32 table and sizes that are not negative");
    return nullptr;
  }
  Instructions instructions;
  if (!instructions_of(name, instructions)) return nullptr;
  Problem problem{query.data(), subject.data(), query.size(), subject.size(), scores.items<const int8_t>(),
                  max_score, open, extend, local != 0,
                  (ends & 1) != 0, (ends & 2) != 0, (ends & 4) != 0, (ends & 8) != 0, {}, {}};
  const Settings settings{tile, memory, threads, beam, &kernels_of(instructions), asked_to_stop};
  Aligned aligned{};
  long long needed = 0;
  const bool done = without_gil([&] {
    try {
      prepare(problem);
      aligned = align(problem, settings, with_path != 0);
    } catch (const MemoryNeeded& error) {
      needed = error.bytes;
    }
  });
  if (!done) return nullptr;
  return needed > 0 ? PyLong_FromLongLong(needed) : result_of(aligned);
}

}  // namespace swsearch
