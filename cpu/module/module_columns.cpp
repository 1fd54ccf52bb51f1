// module_columns: the bindings that swsearch/engines/cpu/columns.py calls.
#include "module/module.hpp"

#include <algorithm>
#include <cstring>

#include "pairs/columns.hpp"

namespace swsearch {

namespace {

constexpr int kMostThreads = 1024;

// Ascending from 0 on to exactly `last`.
bool ascends(const int64_t* offsets, int64_t n, int64_t last) {
  if (n < 1 || offsets[0] != 0 || offsets[n - 1] != last) return false;
  for (int64_t k = 1; k < n; ++k) {
    if (offsets[k] < offsets[k - 1]) return false;
  }
  return true;
}

// What the three functions take first, as a tuple: two pools of codes, two of letters or nothing, places, starts,
// runs' offsets, lengths and operations, scores, three tables of 256, threads.
struct Arguments {
  Buffer queries, subjects, query_letters, subject_letters, places, starts, offsets, lengths, operations;
  Buffer scores, identities, encode, decode;
  Found found{};

  // False with Python's exception set where something is wrong; `fits` is still to be asked.
  bool read(PyObject* given) {
    if (!PyArg_ParseTuple(given, "y*y*y*y*y*y*y*y*y*y*y*y*y*i", &queries.view, &subjects.view, &query_letters.view,
                          &subject_letters.view, &places.view, &starts.view, &offsets.view, &lengths.view,
                          &operations.view, &scores.view, &identities.view, &encode.view, &decode.view,
                          &found.threads)) {
      return false;
    }
    if (!have_sizes() || !places_within(places, queries, subjects)) {
      PyErr_SetString(PyExc_ValueError, "expected pools, tables, and places, starts and runs for each pair");
      return false;
    }
    if (!places_below(places, queries, subjects, kCodes)) {
      PyErr_SetString(PyExc_ValueError, "expected codes below 32");
      return false;
    }
    found.queries = queries.data();
    found.subjects = subjects.data();
    found.query_letters = query_letters.size() > 0 ? query_letters.data() : nullptr;
    found.subject_letters = subject_letters.size() > 0 ? subject_letters.data() : nullptr;
    found.places = places.items<const int64_t>();
    found.starts = starts.items<const int64_t>();
    found.run_offsets = offsets.items<const int64_t>();
    found.run_lengths = lengths.items<const int64_t>();
    found.run_operations = operations.data();
    found.scores = scores.items<const int8_t>();
    found.identities = identities.data();
    found.encode = encode.data();
    found.decode = decode.data();
    found.threads = std::min(found.threads, kMostThreads);
    found.interrupted = asked_to_stop;
    return true;
  }

 private:
  bool have_sizes() {
    const auto beside = [](const Buffer& letters, const Buffer& codes) {
      return letters.size() == 0 || letters.size() == codes.size();
    };
    found.count = starts.count<int64_t>() / 2;
    return beside(query_letters, queries) && beside(subject_letters, subjects) && places.aligned<int64_t>() &&
           starts.aligned<int64_t>() && offsets.aligned<int64_t>() && lengths.aligned<int64_t>() &&
           starts.count<int64_t>() == 2 * found.count && places.count<int64_t>() == 4 * found.count &&
           offsets.count<int64_t>() == found.count + 1 && operations.size() == lengths.count<int64_t>() &&
           ascends(offsets.items<const int64_t>(), found.count + 1, operations.size()) &&
           scores.size() == kCodes * kCodes && identities.size() == 256 && encode.size() == 256 &&
           decode.size() == 256 && found.threads >= 1;
  }
};

// Do work without the GIL once the runs have been looked at. False with Python's exception set where that fails.
template <class Work>
bool done(const Arguments& given, Work&& work) {
  bool fine = false;
  if (!without_gil([&] {
        fine = fits(given.found);
        if (fine) fine = work();
      })) {
    return false;
  }
  if (!fine) PyErr_SetString(PyExc_ValueError, "expected runs of M, I and D within the sequences, and room for them");
  return fine;
}

PyObject* none() {
  Py_INCREF(Py_None);
  return Py_None;
}

}  // namespace

PyObject* py_count(PyObject*, PyObject* arguments) {
  PyObject* common = nullptr;
  Buffer counts;
  Arguments given;
  if (!PyArg_ParseTuple(arguments, "O!w*", &PyTuple_Type, &common, &counts.view) || !given.read(common)) return nullptr;
  if (!counts.aligned<int64_t>() || counts.count<int64_t>() != kCounts * given.found.count) {
    PyErr_SetString(PyExc_ValueError, "expected room for seven numbers a pair");
    return nullptr;
  }
  const bool fine = done(given, [&] {
    count_columns(given.found, counts.items<int64_t>());
    return true;
  });
  return fine ? none() : nullptr;
}

PyObject* py_rows(PyObject*, PyObject* arguments) {
  PyObject* common = nullptr;
  Buffer offsets, query, middle, subject;
  Arguments given;
  if (!PyArg_ParseTuple(arguments, "O!y*w*w*w*", &PyTuple_Type, &common, &offsets.view, &query.view, &middle.view,
                        &subject.view) ||
      !given.read(common)) {
    return nullptr;
  }
  const bool sizes = offsets.aligned<int64_t>() && offsets.count<int64_t>() == given.found.count + 1 &&
                     query.size() == middle.size() && query.size() == subject.size();
  if (!sizes || offsets.items<const int64_t>()[given.found.count] != query.size()) {
    PyErr_SetString(PyExc_ValueError, "expected three rows of one size, and where each alignment begins in them");
    return nullptr;
  }
  const Rows rows{offsets.items<const int64_t>(), query.items<uint8_t>(), middle.items<uint8_t>(),
                  subject.items<uint8_t>()};
  const bool fine = done(given, [&] {
    if (!as_long(given.found, rows.offsets)) return false;
    write_rows(given.found, rows);
    return true;
  });
  return fine ? none() : nullptr;
}

PyObject* py_trace_back_operations(PyObject*, PyObject* arguments) {
  PyObject* common = nullptr;
  Buffer sizes;
  Arguments given;
  if (!PyArg_ParseTuple(arguments, "O!w*", &PyTuple_Type, &common, &sizes.view) || !given.read(common)) return nullptr;
  if (!sizes.aligned<int64_t>() || sizes.count<int64_t>() != given.found.count) {
    PyErr_SetString(PyExc_ValueError, "expected room for a number a pair");
    return nullptr;
  }
  std::vector<std::string> parts;
  const bool fine = done(given, [&] {
    parts = trace_back_operations(given.found, sizes.items<int64_t>());
    return true;
  });
  if (!fine) return nullptr;
  size_t size = 0;
  for (const std::string& part : parts) size += part.size();
  PyObject* pool = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
  if (pool == nullptr) return nullptr;
  char* at = PyBytes_AsString(pool);
  for (const std::string& part : parts) {
    std::memcpy(at, part.data(), part.size());
    at += part.size();
  }
  return pool;
}

}  // namespace swsearch
