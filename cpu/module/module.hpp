// module: what the files of bindings share. Each module_*.cpp defines functions that are listed in module.cpp.
//
// The stable ABI of Python 3.11 (setup.py defines Py_LIMITED_API) lets one binary serve every later version.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <exception>
#include <new>
#include <utility>

#include "interruption.hpp"
#include "isa/instructions.hpp"

namespace swsearch {

// A bytes-like argument, for the formats y* and w*; let go of at the end of its scope.
struct Buffer {
  Py_buffer view{};
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { PyBuffer_Release(&view); }

  Py_ssize_t size() const { return view.len; }  // bytes
  const uint8_t* data() const { return static_cast<const uint8_t*>(view.buf); }
  // Its items as another type, of which it holds count<T>(); numpy aligns them.
  template <class T>
  T* items() const {
    return static_cast<T*>(view.buf);
  }
  // Whether items of another type may be read there, and nothing is left over.
  template <class T>
  bool aligned() const {
    return view.len == 0 || (reinterpret_cast<uintptr_t>(view.buf) % alignof(T) == 0 &&
                             view.len % static_cast<Py_ssize_t>(sizeof(T)) == 0);
  }
  template <class T>
  Py_ssize_t count() const {
    return view.len / static_cast<Py_ssize_t>(sizeof(T));
  }
};

// Whether costs of a gap leave room for sums in 32 bits; Scoring allows a hundredth.
inline bool costs_fit(int one, int other) { return one >= 0 && other >= 0 && one <= 1 << 20 && other <= 1 << 20; }

// Whether every code is below a limit.
bool all_below(const Buffer& codes, int limit);

// Whether places are four numbers per pair, where its query begins and how long it is and so for its subject, that lie
// within these pools.
bool places_within(const Buffer& places, const Buffer& queries, const Buffer& subjects);

// Whether every code at such places is below a limit; what no pair names is not looked at.
bool places_below(const Buffer& places, const Buffer& queries, const Buffer& subjects, int limit);

// Whether scores and costs of rows are there for all of them or for none, and costs only with scores; no cost may be
// negative or above those that are named as the largest.
bool rows_fit(const Buffer& scores, const Buffer& costs, int64_t rows, int most_first, int most_extend);

// Whether there is such a mode; with shifts, whether their cost fits the narrowest lanes and no row has own scores.
bool mode_fits(int mode, int shift, int first_bits, const Buffer& row_scores);

// Run Python's signal handlers, and look whether this thread's work is to end, with the GIL held. Once it has said
// yes, Python's exception is set.
bool must_end();

// An AskToStop that runs Python's signal handlers, without the GIL held. Once it has said yes, Python's exception
// is set, and the function has to return null.
bool asked_to_stop();

// Do work without the GIL. False if it threw; then Python's exception is set.
template <class Work>
bool without_gil(Work&& work) {
  enum { kFine, kInterrupted, kNoMemory, kFailed } outcome = kFine;
  Py_BEGIN_ALLOW_THREADS;
  try {
    std::forward<Work>(work)();
  } catch (const Interrupted&) {
    outcome = kInterrupted;  // asked_to_stop has set it
  } catch (const std::bad_alloc&) {
    outcome = kNoMemory;
  } catch (const std::exception&) {
    outcome = kFailed;
  }
  Py_END_ALLOW_THREADS;
  if (outcome == kNoMemory) PyErr_NoMemory();
  if (outcome == kFailed) PyErr_SetString(PyExc_RuntimeError, "swsearch.engines.cpu._simd failed; please report this");
  return outcome == kFine;
}

// Find an instruction set by its name; if it is not available, set ValueError and return false.
bool instructions_of(const char* name, Instructions& found);

// module_pairs.cpp
PyObject* py_align(PyObject*, PyObject* arguments);
PyObject* py_align_many(PyObject*, PyObject* arguments);
PyObject* py_align_further(PyObject*, PyObject* arguments);

// module_columns.cpp
PyObject* py_count(PyObject*, PyObject* arguments);
PyObject* py_rows(PyObject*, PyObject* arguments);
PyObject* py_trace_back_operations(PyObject*, PyObject* arguments);

// module_inclusion.cpp
PyObject* py_trim_ends(PyObject*, PyObject* arguments);
PyObject* py_select_hits(PyObject*, PyObject* arguments);
PyObject* py_lay_out(PyObject*, PyObject* arguments);

// module_math.cpp
PyObject* py_math(PyObject*, PyObject* arguments);

// module_search.cpp
PyObject* py_search(PyObject*, PyObject* arguments);

// module_shift.cpp
PyObject* py_align_shifted(PyObject*, PyObject* arguments);
PyObject* py_shifted_memory(PyObject*, PyObject* arguments);

// module_profiles.cpp
PyObject* py_predict_contexts(PyObject*, PyObject* arguments);
PyObject* py_select_diverse(PyObject*, PyObject* arguments);
PyObject* py_observe(PyObject*, PyObject* arguments);

// module_shuffle.cpp
PyObject* py_shuffle(PyObject*, PyObject* arguments);
PyObject* py_score_shuffled(PyObject*, PyObject* arguments);

// module_store.cpp
PyObject* py_read_ranges(PyObject*, PyObject* arguments);
PyObject* py_copy_ranges(PyObject*, PyObject* arguments);

// module_text.cpp
PyObject* py_write_table(PyObject*, PyObject* arguments);
PyObject* py_header_parts(PyObject*, PyObject* arguments);
PyObject* py_split_header(PyObject*, PyObject* arguments);

}  // namespace swsearch
