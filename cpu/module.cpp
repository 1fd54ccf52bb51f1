// module: swsearch._simd, what Python sees. Its callers in swsearch/ check the arguments.
#include "module.hpp"

namespace swsearch {

bool all_below(const Buffer& codes, int limit) {
  for (Py_ssize_t k = 0; k < codes.size(); ++k) {
    if (codes.data()[k] >= limit) return false;
  }
  return true;
}

bool asked_to_stop() {
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return raised;
}

namespace {

PyMethodDef methods[] = {
    {"align", py_align, METH_VARARGS, "Align a pair; see swsearch.native."},
    {"instructions", py_instructions, METH_O, "Name the instruction set that is used."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef_Slot slots[] = {{0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "swsearch._simd", "What swsearch computes on the CPU.", 0, methods,
                          slots, nullptr, nullptr, nullptr};

}  // namespace

}  // namespace swsearch

PyMODINIT_FUNC PyInit__simd() { return PyModuleDef_Init(&swsearch::definition); }
