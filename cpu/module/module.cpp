// module: swsearch.engines.cpu._simd, what Python sees. Its callers in swsearch/ check the arguments.
#include "module/module.hpp"

namespace swsearch {

bool all_below(const Buffer& codes, int limit) {
  // the largest of all rather than the first that is too large: many bytes at a time
  const uint8_t* const all = codes.data();
  uint8_t largest = 0;
  for (Py_ssize_t k = 0; k < codes.size(); ++k) largest = all[k] > largest ? all[k] : largest;
  return codes.size() == 0 || largest < limit;
}

bool asked_to_stop() {
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() != 0;
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

PyMethodDef methods[] = {
    {"align", py_align, METH_VARARGS, "Align a pair; see swsearch.engines.cpu.tracing."},
    {"align_many", py_align_many, METH_VARARGS, "Align pairs side by side; see swsearch.engines.cpu.tracing."},
    {"align_further", py_align_further, METH_VARARGS, "Find further alignments of a pair; see swsearch.job.further."},
    {"search", py_search, METH_VARARGS, "Score queries against a chunk; see swsearch.engines.cpu.engine."},
    {"shuffle", py_shuffle, METH_VARARGS, "Shuffle copies of sequences into blocks; see swsearch.job.shuffled."},
    {"score_shuffled", py_score_shuffled, METH_VARARGS, "Score shuffled copies; see swsearch.job.shuffled."},
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
