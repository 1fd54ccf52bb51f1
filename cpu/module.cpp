// module: swsearch._simd, what Python sees. swsearch/native.py is its only caller and checks the arguments.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <new>

#include "problem.hpp"

namespace {

using namespace swsearch;

struct Buffer {
  Py_buffer view{};
  ~Buffer() { PyBuffer_Release(&view); }
  const uint8_t* data() const { return static_cast<const uint8_t*>(view.buf); }
};

bool all_below(const Buffer& buffer, int limit) {
  for (Py_ssize_t k = 0; k < buffer.view.len; ++k) {
    if (buffer.data()[k] >= limit) return false;
  }
  return true;
}

bool asked_to_stop() {
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() != 0;  // the exception stays set until the call returns
  PyGILState_Release(state);
  return raised;
}

PyObject* result_of(const Aligned& aligned) {
  PyObject* cigar = PyTuple_New(static_cast<Py_ssize_t>(aligned.cigar.size()));
  if (cigar == nullptr) return nullptr;
  Py_ssize_t place = 0;
  for (const auto& [length, operation] : aligned.cigar) {
    PyObject* run = Py_BuildValue("(LC)", static_cast<long long>(length), static_cast<int>(operation));
    if (run == nullptr) {
      Py_DECREF(cigar);
      return nullptr;
    }
    PyTuple_SET_ITEM(cigar, place++, run);
  }
  return Py_BuildValue("(LLLNLi)", static_cast<long long>(aligned.score), static_cast<long long>(aligned.i),
                       static_cast<long long>(aligned.j), cigar, static_cast<long long>(aligned.cells), aligned.passes);
}

PyObject* py_align(PyObject*, PyObject* arguments) {
  Buffer query, subject, scores;
  int max_score, open, extend, local, ends, with_path, threads, tile;
  long long memory, beam;
  const char* instructions;
  if (!PyArg_ParseTuple(arguments, "y*y*y*iiiiiiLiiLs", &query.view, &subject.view, &scores.view, &max_score, &open,
                        &extend, &local, &ends, &with_path, &memory, &threads, &tile, &beam, &instructions)) {
    return nullptr;
  }
  if (scores.view.len != kCodes * kCodes || !all_below(query, kCodes) || !all_below(subject, kCodes) || threads < 1 ||
      tile < 0 || tile > 4096 || open < 0 || extend < 0 || max_score < 0) {
    PyErr_SetString(PyExc_ValueError, "expected codes below 32, a 32 x 32 table and sizes that are not negative");
    return nullptr;
  }
  Problem problem{query.data(), subject.data(), query.view.len, subject.view.len,
                        reinterpret_cast<const int8_t*>(scores.data()), max_score, open, extend, local != 0,
                        (ends & 1) != 0, (ends & 2) != 0, (ends & 4) != 0, (ends & 8) != 0, {}, {}};
  const Settings settings{tile, memory, threads, beam, &choose_kernels(instructions), asked_to_stop};
  Aligned aligned{};
  enum { kFine, kInterrupted, kTooLarge, kNoMemory } outcome = kFine;
  long long needed = 0;
  Py_BEGIN_ALLOW_THREADS;
  try {
    prepare(problem);
    aligned = align(problem, settings, with_path != 0);
  } catch (const Interrupted&) {
    outcome = kInterrupted;
  } catch (const MemoryNeeded& error) {
    needed = error.bytes;
    outcome = kTooLarge;
  } catch (const std::bad_alloc&) {
    outcome = kNoMemory;
  }
  Py_END_ALLOW_THREADS;
  switch (outcome) {
    case kInterrupted:
      return nullptr;
    case kTooLarge:
      return PyLong_FromLongLong(needed);
    case kNoMemory:
      return PyErr_NoMemory();
    default:
      return result_of(aligned);
  }
}

PyObject* py_instructions(PyObject*, PyObject* wanted) {
  const char* name = PyUnicode_AsUTF8(wanted);
  return name == nullptr ? nullptr : PyUnicode_FromString(choose_kernels(name).name);
}

PyMethodDef methods[] = {
    {"align", py_align, METH_VARARGS, "Align a pair; see swsearch.native."},
    {"instructions", py_instructions, METH_O, "Name the instruction set that is used."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "swsearch._simd", "Alignment of pairs on the CPU.", 0, methods,
                          nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__simd() { return PyModule_Create(&definition); }
