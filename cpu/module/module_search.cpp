// module_search: the binding that swsearch/engines/cpu/engine.py calls.
#include "module/module.hpp"

#include <algorithm>

#include "isa/kernels.hpp"
#include "search/search.hpp"

namespace swsearch {

namespace {

// Whether lengths and offsets describe blocks that lie within their residues.
bool fits(const Search& search, int64_t n_columns) {
  if (search.n_blocks != (search.n_subjects + kBlockLanes - 1) / kBlockLanes) return false;
  // each offset for itself first: the difference of two that are anywhere may wrap
  for (int64_t block = 0; block <= search.n_blocks; ++block) {
    const int64_t offset = search.column_offsets[block];
    if (offset < (block ? search.column_offsets[block - 1] : 0) || offset > n_columns) return false;
  }
  int64_t before = search.n_subjects > 0 ? search.lengths[0] : 0;
  for (int64_t k = 0; k < search.n_subjects; ++k) {
    const int64_t block = k / kBlockLanes, columns = search.column_offsets[block + 1] - search.column_offsets[block];
    const int64_t length = search.lengths[k];
    if (length < 0 || length > before || columns % 8 != 0 || length > columns) return false;
    before = length;
  }
  return true;
}

// Whether all values of a buffer are 0 or more.
bool not_negative(const Buffer& numbers) {
  const int32_t* values = numbers.items<const int32_t>();
  return std::all_of(values, values + numbers.count<int32_t>(), [](int32_t value) { return value >= 0; });
}

bool is_ascending(const int64_t* chosen, int64_t n, int64_t n_subjects) {
  for (int64_t k = 0; k < n; ++k) {
    if (chosen[k] < (k ? chosen[k - 1] + 1 : 0) || chosen[k] >= n_subjects) return false;
  }
  return true;
}

// Tell Python of cells that were done, and run its signal handlers; true if that raised.
bool tell(PyObject* progress, int64_t cells) {
  const PyGILState_STATE state = PyGILState_Ensure();
  bool raised = must_end();
  if (!raised && progress != Py_None && cells > 0) {
    PyObject* result = PyObject_CallFunction(progress, "L", static_cast<long long>(cells));
    raised = result == nullptr;
    Py_XDECREF(result);
  }
  PyGILState_Release(state);
  return raised;
}

}  // namespace

bool rows_fit(const Buffer& scores, const Buffer& costs, int64_t rows, int most_first, int most_extend) {
  const auto whole = [rows](const Buffer& buffer, Py_ssize_t bytes) {
    return buffer.size() == 0 || buffer.size() == rows * bytes;
  };
  if (!whole(scores, kCodes) || !whole(costs, sizeof(RowCosts)) || !costs.aligned<RowCosts>()) return false;
  if (costs.size() == 0) return true;
  const RowCosts* const all = costs.items<const RowCosts>();
  const auto fits = [most_first, most_extend](int first, int extend) {
    return extend >= 0 && first >= extend && first <= most_first && extend <= most_extend;
  };
  return scores.size() > 0 && std::all_of(all, all + rows, [&fits](const RowCosts& row) {
           return fits(row.deletion_first, row.deletion_extend) && fits(row.insertion_first, row.insertion_extend);
         });
}

bool mode_fits(int mode, int shift, int first_bits, const Buffer& row_scores) {
  if (mode < 0 || mode > static_cast<int>(Mode::kShifted)) return false;
  if (static_cast<Mode>(mode) != Mode::kShifted) return shift == 0;
  // in the narrowest lane, what a shift costs leaves half of the values for scores
  return shift >= 1 && shift <= (first_bits == 8 ? 1 << 6 : 1 << 14) && row_scores.size() == 0;
}

PyObject* py_search(PyObject*, PyObject* arguments) {
  Buffer codes, query_offsets, longest_16, row_scores, row_costs, residues, column_offsets, lengths, chosen, scores, out, saturated;
  int first, extend, most_first, most_extend, mode, first_bits, last_bits, threads, way, some, shift = 0;
  const char* name;
  PyObject* progress;
  if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*y*y*y*y*py*iiiiiiiiisOw*w*|i", &codes.view, &query_offsets.view,
                        &longest_16.view, &row_scores.view, &row_costs.view, &residues.view, &column_offsets.view,
                        &lengths.view, &chosen.view, &some, &scores.view, &first, &extend, &most_first, &most_extend,
                        &mode, &first_bits, &last_bits, &threads, &way, &name, &progress, &out.view,
                        &saturated.view, &shift)) {
    return nullptr;
  }
  Instructions instructions;
  if (!instructions_of(name, instructions)) return nullptr;
  Search search;
  search.costs = {scores.items<const int8_t>(), first, extend, static_cast<Mode>(mode), most_first, most_extend, shift};
  search.codes = codes.data();
  search.query_offsets = query_offsets.items<const int64_t>();
  search.n_queries = static_cast<int>(query_offsets.count<int64_t>()) - 1;
  search.row_scores = row_scores.size() > 0 ? row_scores.items<const int8_t>() : nullptr;
  search.row_costs = row_costs.size() > 0 ? row_costs.items<const RowCosts>() : nullptr;
  search.longest_16 = longest_16.items<const int32_t>();
  search.residues = residues.data();
  search.column_offsets = column_offsets.items<const int64_t>();
  search.n_blocks = column_offsets.count<int64_t>() - 1;
  search.lengths = lengths.items<const int32_t>();
  search.n_subjects = lengths.count<int32_t>();
  search.chosen = some ? chosen.items<const int64_t>() : nullptr;
  search.n_chosen = some ? chosen.count<int64_t>() : 0;
  search.first_bits = first_bits;
  search.last_bits = last_bits;
  search.threads = threads;
  search.way = static_cast<Way>(way);
  search.kernels = &search_kernels(instructions);
  search.scores = out.items<int32_t>();
  search.saturated = saturated.items<uint8_t>();
  search.stop = [progress](int64_t cells) { return tell(progress, cells); };
  const bool whole = query_offsets.aligned<int64_t>() && longest_16.aligned<int32_t>() &&
                     column_offsets.aligned<int64_t>() && lengths.aligned<int32_t>() && chosen.aligned<int64_t>() &&
                     out.aligned<int32_t>() && query_offsets.count<int64_t>() <= INT32_MAX &&
                     residues.size() % kBlockLanes == 0;
  const int64_t columns = search.n_queries < 0 ? 0 : some ? search.n_chosen : search.n_subjects;
  bool good = whole && search.n_queries >= 0 && search.n_blocks >= 0 && scores.size() == kCodes * kCodes &&
              all_below(codes, kCodes) && rows_fit(row_scores, row_costs, codes.size(), most_first, most_extend) &&
              longest_16.count<int32_t>() == search.n_queries && not_negative(longest_16) &&
              mode_fits(mode, shift, first_bits, row_scores) && first >= extend && costs_fit(first, extend) && costs_fit(most_first, most_extend) && threads >= 1 && way >= 0 && way <= 2 &&
              out.count<int32_t>() == search.n_queries * columns && saturated.size() == search.n_queries * columns &&
              fits(search, residues.size() / kBlockLanes) &&
              (!some || is_ascending(search.chosen, search.n_chosen, search.n_subjects));
  for (const int bits : {first_bits, last_bits}) good = good && (bits == 8 || bits == 16 || bits == 32);
  for (int query = 0; good && query < search.n_queries; ++query) {
    good = search.query_offsets[query] >= 0 && search.query_offsets[query] < search.query_offsets[query + 1] &&
           search.query_offsets[query + 1] <= codes.size();
  }
  if (!good) {
    PyErr_SetString(PyExc_ValueError, "expected codes below 32, queries that are not empty, and blocks of 64 subjects");
    return nullptr;
  }
  SearchCounts counts;
  if (!without_gil([&] { counts = run(search); })) return nullptr;
  return Py_BuildValue("(LLL)", static_cast<long long>(counts.pairs[0]), static_cast<long long>(counts.pairs[1]),
                       static_cast<long long>(counts.pairs[2]));
}

}  // namespace swsearch
