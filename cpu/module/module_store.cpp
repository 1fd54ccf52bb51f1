// module_store: the bindings that db/arrays.py calls.
#include "module/module.hpp"

#include <algorithm>
#include <cstring>

#include "store/ranges.hpp"

namespace swsearch {

namespace {

constexpr int kMostThreads = 1024;

bool within(int64_t begin, int64_t length, Py_ssize_t size) {
  return begin >= 0 && length >= 0 && begin <= size && length <= size - begin;
}

}  // namespace

PyObject* py_read_ranges(PyObject*, PyObject* arguments) {
  Buffer sums, begins, offsets, out;
  Ranges asked{};
  long long at, size, piece, step;
  int threads;
  if (!PyArg_ParseTuple(arguments, "iLLLy*y*y*Liw*", &asked.file, &at, &size, &piece, &sums.view, &begins.view,
                        &offsets.view, &step, &threads, &out.view)) {
    return nullptr;
  }
  asked.at = at;
  asked.size = size;
  asked.piece = piece;
  asked.step = step;
  asked.threads = std::min(threads, kMostThreads);
  asked.sums = sums.items<const uint32_t>();
  asked.begins = begins.items<const int64_t>();
  asked.offsets = offsets.items<const int64_t>();
  asked.count = begins.count<int64_t>();
  asked.out = out.items<uint8_t>();
  asked.interrupted = asked_to_stop;
  const bool whole = sums.aligned<uint32_t>() && begins.aligned<int64_t>() && offsets.aligned<int64_t>() &&
                     offsets.count<int64_t>() == asked.count + 1;
  if (!whole || !fits(asked, sums.count<uint32_t>(), out.size())) {
    PyErr_SetString(PyExc_ValueError, "expected ranges within an array, its checksums, and room for the ranges");
    return nullptr;
  }
  Checked found;
  if (!without_gil([&] { found = read(asked); })) return nullptr;
  PyObject* broken = PyList_New(0);
  for (const int64_t each : found.broken) {
    PyObject* piece_number = broken == nullptr ? nullptr : PyLong_FromLongLong(each);
    const bool added = piece_number != nullptr && PyList_Append(broken, piece_number) == 0;
    Py_XDECREF(piece_number);
    if (!added) Py_CLEAR(broken);
  }
  if (broken == nullptr) return nullptr;
  return Py_BuildValue("(NLLi)", broken, static_cast<long long>(found.at), static_cast<long long>(found.wanted),
                       found.error);
}

PyObject* py_copy_ranges(PyObject*, PyObject* arguments) {
  Buffer source, begins, target, to, lengths;
  if (!PyArg_ParseTuple(arguments, "y*y*w*y*y*", &source.view, &begins.view, &target.view, &to.view, &lengths.view)) {
    return nullptr;
  }
  const int64_t n = lengths.count<int64_t>();
  bool good = begins.aligned<int64_t>() && to.aligned<int64_t>() && lengths.aligned<int64_t>() &&
              begins.count<int64_t>() == n && to.count<int64_t>() == n;
  const int64_t *from = begins.items<const int64_t>(), *into = to.items<const int64_t>();
  const int64_t* length = lengths.items<const int64_t>();
  for (int64_t k = 0; good && k < n; ++k) {
    // one without bytes may begin anywhere
    good = length[k] == 0 ||
           (within(from[k], length[k], source.size()) && within(into[k], length[k], target.size()));
  }
  if (!good) {
    PyErr_SetString(PyExc_ValueError, "expected ranges within both arrays");
    return nullptr;
  }
  const auto copy = [&] {
    uint8_t* const out = target.items<uint8_t>();
    for (int64_t k = 0; k < n; ++k) {
      if (length[k] > 0) std::memmove(out + into[k], source.data() + from[k], static_cast<size_t>(length[k]));
    }
  };
  if (!without_gil(copy)) return nullptr;
  Py_RETURN_NONE;
}

}  // namespace swsearch
