// module: swsearch.engines.cpu._simd, what Python sees. Its callers in swsearch/ check the arguments.
#include "module/module.hpp"

#include <algorithm>
#include <vector>

namespace swsearch {

namespace {

// What this thread works on, by a number that no other work has; 0 if it never said so.
thread_local long long this_work = 0;

// Work that is not wanted any more; read and written with the GIL held.
std::vector<long long>& stopped_work() {
  static std::vector<long long> work;
  return work;
}

// Whether this thread's work is not wanted any more; the GIL must be held.
bool this_thread_is_stopped() {
  const auto& work = stopped_work();
  return this_work != 0 && std::find(work.begin(), work.end(), this_work) != work.end();
}

bool all_below(const uint8_t* codes, int64_t count, int limit) {
  // the greatest of some at a time, since a loop with an exit in it takes one code after the other
  constexpr int64_t kTogether = 1 << 14;
  for (int64_t begin = 0; begin < count; begin += kTogether) {
    const int64_t end = std::min(count, begin + kTogether);
    uint8_t greatest = 0;
    for (int64_t k = begin; k < end; ++k) greatest = std::max(greatest, codes[k]);
    if (greatest >= limit) return false;
  }
  return true;
}

// One side of the pairs: the first two of their numbers or the last two.
bool side_below(const Buffer& places, int side, const Buffer& codes, int limit) {
  const int64_t *place = places.items<const int64_t>() + 2 * side, count = places.count<int64_t>() / 4;
  int64_t residues = 0;
  for (int64_t k = 0; k < count && residues < codes.size(); ++k) residues += place[4 * k + 1];
  if (residues >= codes.size()) return all_below(codes, limit);
  for (int64_t k = 0; k < count; ++k) {
    // the hits of a query stand together
    if (k > 0 && place[4 * k] == place[4 * k - 4] && place[4 * k + 1] == place[4 * k - 3]) continue;
    if (!all_below(codes.data() + place[4 * k], place[4 * k + 1], limit)) return false;
  }
  return true;
}

}  // namespace

bool all_below(const Buffer& codes, int limit) { return all_below(codes.data(), codes.size(), limit); }

bool places_within(const Buffer& places, const Buffer& queries, const Buffer& subjects) {
  const auto within = [](int64_t begin, int64_t length, Py_ssize_t size) {
    return begin >= 0 && length >= 0 && begin <= size && length <= size - begin;
  };
  bool fine = places.size() % (4 * static_cast<Py_ssize_t>(sizeof(int64_t))) == 0 && places.aligned<int64_t>();
  for (Py_ssize_t k = 0; fine && k < places.count<int64_t>(); k += 4) {
    const int64_t* place = places.items<const int64_t>() + k;
    fine = within(place[0], place[1], queries.size()) && within(place[2], place[3], subjects.size());
  }
  return fine;
}

bool places_below(const Buffer& places, const Buffer& queries, const Buffer& subjects, int limit) {
  return side_below(places, 0, queries, limit) && side_below(places, 1, subjects, limit);
}

bool must_end() {
  if (PyErr_CheckSignals() != 0) return true;
  if (!this_thread_is_stopped()) return false;
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  return true;
}

bool asked_to_stop() {
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool raised = must_end();
  PyGILState_Release(state);
  return raised;
}

bool instructions_of(const char* name, Instructions& found) {
  if (find_instructions(name, found)) return true;
  PyErr_Format(PyExc_ValueError, "expected an instruction set that this machine has, got '%s'", name);
  return false;
}

namespace {

PyObject* py_instruction_sets(PyObject*, PyObject*) {
  PyObject* all = PyList_New(0);
  if (all == nullptr) return nullptr;
  for (const Instructions each : kAllInstructions) {
    PyObject* one = Py_BuildValue("(sO)", name_of(each), is_available(each) ? Py_True : Py_False);
    const bool added = one != nullptr && PyList_Append(all, one) == 0;
    Py_XDECREF(one);
    if (!added) {
      Py_DECREF(all);
      return nullptr;
    }
  }
  return all;
}

PyObject* py_work_on(PyObject*, PyObject* number) {
  const long long work = PyLong_AsLongLong(number);
  if (PyErr_Occurred() != nullptr) return nullptr;
  this_work = work;
  Py_RETURN_NONE;
}

PyObject* py_stop(PyObject*, PyObject* number) {
  const long long work = PyLong_AsLongLong(number);
  if (PyErr_Occurred() != nullptr) return nullptr;
  stopped_work().push_back(work);
  Py_RETURN_NONE;
}

PyObject* py_forget(PyObject*, PyObject* number) {
  const long long work = PyLong_AsLongLong(number);
  if (PyErr_Occurred() != nullptr) return nullptr;
  auto& all = stopped_work();
  all.erase(std::remove(all.begin(), all.end(), work), all.end());
  Py_RETURN_NONE;
}

PyObject* py_is_stopped(PyObject*, PyObject*) { return PyBool_FromLong(this_thread_is_stopped()); }

PyMethodDef methods[] = {
    {"work_on", py_work_on, METH_O, "Say by a number what this thread works on; see swsearch.pipeline.prefetch."},
    {"stop", py_stop, METH_O, "Let what computes for some work end with KeyboardInterrupt."},
    {"forget", py_forget, METH_O, "Take `stop` back, where the work has ended."},
    {"is_stopped", py_is_stopped, METH_NOARGS, "Say whether `stop` was called for this thread's work."},
    {"align", py_align, METH_VARARGS, "Align a pair; see swsearch.engines.cpu.tracing."},
    {"align_many", py_align_many, METH_VARARGS, "Align pairs side by side; see swsearch.engines.cpu.tracing."},
    {"align_further", py_align_further, METH_VARARGS, "Find further alignments of a pair; see swsearch.pipeline.pairs."},
    {"count", py_count, METH_VARARGS, "Count the columns of alignments; see swsearch.engines.cpu.columns."},
    {"rows", py_rows, METH_VARARGS, "Write alignments as rows of text; see swsearch.engines.cpu.columns."},
    {"trace_back_operations", py_trace_back_operations, METH_VARARGS,
     "Write alignments as BLAST's trace-back operations; see swsearch.engines.cpu.columns."},
    {"predict_contexts", py_predict_contexts, METH_VARARGS, "Sum what contexts expect; see swsearch.profiles.contexts."},
    {"select_diverse", py_select_diverse, METH_VARARGS, "Choose different rows; see swsearch.profiles.row_filter."},
    {"math", py_math, METH_VARARGS, "Compute a function of numbers; see swsearch.statistics.portable_math."},
    {"search", py_search, METH_VARARGS, "Score queries against a chunk; see swsearch.engines.cpu.engine."},
    {"align_shifted", py_align_shifted, METH_VARARGS, "Align with frame shifts; see swsearch.engines.cpu.tracing."},
    {"shifted_memory", py_shifted_memory, METH_VARARGS, "Count the bytes that `align_shifted` takes for a pair."},
    {"shuffle", py_shuffle, METH_VARARGS, "Shuffle copies of sequences into blocks; see swsearch.pipeline.null_models."},
    {"score_shuffled", py_score_shuffled, METH_VARARGS, "Score shuffled copies; see swsearch.pipeline.null_models."},
    {"read_ranges", py_read_ranges, METH_VARARGS, "Read ranges of a file's array, checksums compared; see db/arrays.py."},
    {"copy_ranges", py_copy_ranges, METH_VARARGS, "Copy ranges of bytes to other places; see db/arrays.py."},
    {"observe", py_observe, METH_VARARGS, "Weight the rows of an alignment; see swsearch.profiles.construction."},
    {"trim_ends", py_trim_ends, METH_VARARGS, "Cut alignments back; see swsearch.pipeline.inclusion."},
    {"select_hits", py_select_hits, METH_VARARGS, "Choose alignments for a profile; see swsearch.pipeline.inclusion."},
    {"lay_out", py_lay_out, METH_VARARGS, "Lay subjects out in columns; see swsearch.profiles.construction."},
    {"write_table", py_write_table, METH_VARARGS, "Write lines of a table; see swsearch.report.base."},
    {"header_parts", py_header_parts, METH_VARARGS, "Return the identifiers of headers, or the descriptions."},
    {"split_header", py_split_header, METH_VARARGS, "Split a header; see db/fasta.py."},
    {"instruction_sets", py_instruction_sets, METH_NOARGS, "Name every instruction set, and say whether it is here."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef_Slot slots[] = {{0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "swsearch.engines.cpu._simd",
                          "What swsearch computes on the CPU.",
                          0,
                          methods,
                          slots,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

}  // namespace swsearch

PyMODINIT_FUNC PyInit__simd() { return PyModuleDef_Init(&swsearch::definition); }
