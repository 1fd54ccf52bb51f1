// module_text: the bindings that swsearch/report/base.py, swsearch/results/table.py and db/fasta.py call.
#include "module/module.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "text/headers.hpp"
#include "text/table.hpp"

namespace swsearch {

namespace {

struct Release {
  void operator()(PyObject* object) const { Py_DECREF(object); }
};
using Owned = std::unique_ptr<PyObject, Release>;

// The columns of a table, and what owns their values meanwhile.
struct Columns {
  std::vector<Column> columns;
  std::vector<Owned> owners;
  std::vector<std::unique_ptr<Buffer>> buffers;
  Py_ssize_t n_rows = -1;

  // Add a column of values and the name of their form. False with Python's exception set where that fails.
  bool add(PyObject* values, const char* name) {
    for (const auto& [known, form] : kForms) {
      if (known != name) continue;
      columns.push_back({form, {}, nullptr, nullptr});
      const Py_ssize_t n = form == Form::kText ? add_texts(values) : add_numbers(values);
      if (n < 0) return false;
      if (n_rows < 0) n_rows = n;
      if (n_rows == n) return true;
      PyErr_SetString(PyExc_ValueError, "expected columns of one length");
      return false;
    }
    PyErr_Format(PyExc_ValueError, "expected the name of a form, got '%s'", name);
    return false;
  }

 private:
  Py_ssize_t add_texts(PyObject* values) {
    owners.emplace_back(PySequence_Tuple(values));
    PyObject* const texts = owners.back().get();
    if (texts == nullptr) return -1;
    const Py_ssize_t n = PyTuple_Size(texts);
    columns.back().texts.reserve(static_cast<size_t>(n));
    for (Py_ssize_t k = 0; k < n; ++k) {
      Py_ssize_t size;
      const char* const text = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(texts, k), &size);
      if (text == nullptr) return -1;
      columns.back().texts.emplace_back(text, static_cast<size_t>(size));
    }
    return n;
  }

  Py_ssize_t add_numbers(PyObject* values) {
    static_assert(sizeof(double) == sizeof(int64_t));
    Buffer& numbers = *buffers.emplace_back(std::make_unique<Buffer>());
    if (PyObject_GetBuffer(values, &numbers.view, PyBUF_SIMPLE) != 0) return -1;
    if (!numbers.aligned<double>()) {
      PyErr_SetString(PyExc_ValueError, "expected int64 or float64");
      return -1;
    }
    columns.back().integers = numbers.items<const int64_t>();
    columns.back().doubles = numbers.items<const double>();
    return numbers.count<double>();
  }
};

// Text as UTF-8 where the whole header is that, else as Latin-1, which every header is.
PyObject* decode(std::string_view part, bool is_utf8) {
  const auto size = static_cast<Py_ssize_t>(part.size());
  return is_utf8 ? PyUnicode_DecodeUTF8(part.data(), size, nullptr) : PyUnicode_DecodeLatin1(part.data(), size, nullptr);
}

bool is_utf8(std::string_view header) {
  const auto is_ascii = [](char letter) { return static_cast<unsigned char>(letter) < 128; };
  if (std::all_of(header.begin(), header.end(), is_ascii)) return true;
  const Owned text(PyUnicode_DecodeUTF8(header.data(), static_cast<Py_ssize_t>(header.size()), nullptr));
  if (text == nullptr) PyErr_Clear();
  return text != nullptr;
}

std::string_view view(const char* text, Py_ssize_t size) { return {text, static_cast<size_t>(size)}; }

}  // namespace

PyObject* py_write_table(PyObject*, PyObject* arguments) try {
  PyObject* given;
  int separator;
  const char* empty;
  Py_ssize_t empty_size;
  if (!PyArg_ParseTuple(arguments, "OCs#", &given, &separator, &empty, &empty_size)) return nullptr;
  const Owned pairs(PySequence_Tuple(given));
  if (pairs == nullptr) return nullptr;
  Columns all;
  for (Py_ssize_t k = 0; k < PyTuple_Size(pairs.get()); ++k) {
    PyObject* values;
    const char* form;
    PyObject* const pair = PyTuple_GetItem(pairs.get(), k);
    if (!PyTuple_Check(pair)) {
      PyErr_SetString(PyExc_TypeError, "expected pairs of values and a form");
      return nullptr;
    }
    if (!PyArg_ParseTuple(pair, "Os", &values, &form) || !all.add(values, form)) return nullptr;
  }
  std::string table;
  const char letter = static_cast<char>(separator);
  if (!without_gil([&] { table = write_table(all.columns, all.n_rows, letter, view(empty, empty_size)); })) {
    return nullptr;
  }
  return PyUnicode_DecodeUTF8(table.data(), static_cast<Py_ssize_t>(table.size()), nullptr);
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* py_header_parts(PyObject*, PyObject* arguments) {
  Buffer pool, offsets;
  int is_description;
  if (!PyArg_ParseTuple(arguments, "y*y*p", &pool.view, &offsets.view, &is_description)) return nullptr;
  const int64_t* const at = offsets.items<const int64_t>();
  const Py_ssize_t n = offsets.count<int64_t>() - 1;
  bool fine = offsets.aligned<int64_t>() && n >= 0 && at[0] >= 0 && at[n] <= pool.size();
  for (Py_ssize_t k = 0; fine && k < n; ++k) fine = at[k] <= at[k + 1];
  if (!fine) {
    PyErr_SetString(PyExc_ValueError, "expected ascending offsets within the headers");
    return nullptr;
  }
  Owned parts(PyList_New(n));
  for (Py_ssize_t k = 0; parts != nullptr && k < n; ++k) {
    const std::string_view header = view(reinterpret_cast<const char*>(pool.data()) + at[k], at[k + 1] - at[k]);
    const auto [identifier, description] = split_header(header);
    PyObject* const part = decode(is_description ? description : identifier, is_utf8(header));
    if (part == nullptr || PyList_SetItem(parts.get(), k, part) != 0) return nullptr;
  }
  return parts.release();
}

PyObject* py_split_header(PyObject*, PyObject* arguments) {
  const char* header;
  Py_ssize_t size;
  int is_text;
  if (!PyArg_ParseTuple(arguments, "y#p", &header, &size, &is_text)) return nullptr;
  const auto [identifier, description] = split_header(view(header, size));
  if (!is_text) {
    return Py_BuildValue("(y#y#)", identifier.data(), static_cast<Py_ssize_t>(identifier.size()), description.data(),
                         static_cast<Py_ssize_t>(description.size()));
  }
  const bool utf8 = is_utf8(view(header, size));
  return Py_BuildValue("(NN)", decode(identifier, utf8), decode(description, utf8));
}

}  // namespace swsearch
