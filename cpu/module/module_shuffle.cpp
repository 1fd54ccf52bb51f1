// module_shuffle: the bindings that swsearch/pipeline/null_models.py calls.
#include "module/module.hpp"

#include <algorithm>

#include "codes.hpp"
#include "isa/kernels.hpp"
#include "shuffle/scored.hpp"
#include "shuffle/shuffle.hpp"

namespace swsearch {

namespace {

constexpr int64_t kBlock = 64;  // lanes of a block

// Whether offsets ascend from 0 or more to at most `limit`.
bool ascends(const int64_t* offsets, int64_t n, int64_t limit) {
  for (int64_t k = 0; k < n; ++k) {
    if (offsets[k] < (k ? offsets[k - 1] : 0) || offsets[k] > limit) return false;
  }
  return true;
}

// Whether every lane names a sequence that fits the columns of its block.
bool lanes_fit(const Shuffle& shuffle, int64_t n_sequences) {
  for (int64_t lane = 0; lane < shuffle.n_lanes; ++lane) {
    const int64_t sequence = shuffle.sequences[lane], block = lane / kBlock;
    if (sequence < 0 || sequence >= n_sequences || shuffle.copies[lane] < kUnchanged) return false;
    const int64_t length = shuffle.offsets[sequence + 1] - shuffle.offsets[sequence];
    if (length > shuffle.column_offsets[block + 1] - shuffle.column_offsets[block]) return false;
  }
  return true;
}

// Whether every sequence's length fits 32 bits with room to spare.
bool lengths_fit(const int64_t* offsets, int64_t n_sequences) {
  for (int64_t k = 0; k < n_sequences; ++k) {
    if (offsets[k + 1] - offsets[k] > 1 << 30) return false;
  }
  return true;
}

// Whether every pair names a query and a sequence.
bool pairs_fit(const ScoredCopies& asked) {
  for (int64_t k = 0; k < asked.n_pairs; ++k) {
    const int64_t query = asked.pairs[2 * k], sequence = asked.pairs[2 * k + 1];
    if (query < 0 || query >= asked.n_queries || sequence < 0 || sequence >= asked.n_sequences) return false;
  }
  return true;
}

bool is_width(int bits) { return bits == 8 || bits == 16 || bits == 32; }

}  // namespace

PyObject* py_shuffle(PyObject*, PyObject* arguments) {
  Buffer codes, offsets, sequences, copies, column_offsets, residues;
  Shuffle shuffle;
  int window;
  if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*iiw*", &codes.view, &offsets.view, &sequences.view, &copies.view,
                        &column_offsets.view, &window, &shuffle.threads, &residues.view)) {
    return nullptr;
  }
  shuffle.codes = codes.data();
  shuffle.offsets = offsets.items<const int64_t>();
  shuffle.sequences = sequences.items<const int64_t>();
  shuffle.copies = copies.items<const int32_t>();
  shuffle.n_lanes = sequences.count<int64_t>();
  shuffle.column_offsets = column_offsets.items<const int64_t>();
  shuffle.window = window;
  shuffle.residues = residues.items<uint8_t>();
  const int64_t n_blocks = (shuffle.n_lanes + kBlock - 1) / kBlock, n_offsets = offsets.count<int64_t>();
  const bool good = offsets.aligned<int64_t>() && sequences.aligned<int64_t>() && copies.aligned<int32_t>() &&
                    column_offsets.aligned<int64_t>() && window >= 1 && shuffle.threads >= 1 && n_offsets >= 1 &&
                    copies.count<int32_t>() == shuffle.n_lanes && column_offsets.count<int64_t>() == n_blocks + 1 &&
                    ascends(shuffle.offsets, n_offsets, codes.size()) &&
                    ascends(shuffle.column_offsets, n_blocks + 1, residues.size() / kBlock) &&
                    lanes_fit(shuffle, n_offsets - 1);
  if (!good) {
    PyErr_SetString(PyExc_ValueError, "expected lanes that name sequences, and blocks of 64 lanes that hold them");
    return nullptr;
  }
  if (!without_gil([&] { run(shuffle); })) return nullptr;
  Py_RETURN_NONE;
}

PyObject* py_score_shuffled(PyObject*, PyObject* arguments) {
  Buffer queries, query_offsets, longest_16, row_scores, row_costs, codes, offsets, pairs, scores, out;
  ScoredCopies asked;
  int mode, first, extend, most_first, most_extend, window, way, shift = 0;
  const char* name;
  if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*y*y*y*iiiy*iiiiiiiiisw*|i", &queries.view, &query_offsets.view,
                        &longest_16.view, &row_scores.view, &row_costs.view, &codes.view, &offsets.view, &pairs.view,
                        &asked.first_copy, &asked.n_copies, &window, &scores.view, &first, &extend, &most_first,
                        &most_extend, &mode, &asked.first_bits, &asked.last_bits, &asked.threads, &way, &name,
                        &out.view, &shift)) {
    return nullptr;
  }
  Instructions instructions;
  if (!instructions_of(name, instructions)) return nullptr;
  asked.costs = {scores.items<const int8_t>(), first, extend, static_cast<Mode>(mode), most_first, most_extend, shift};
  asked.queries = queries.data();
  asked.query_offsets = query_offsets.items<const int64_t>();
  asked.n_queries = query_offsets.count<int64_t>() - 1;
  asked.row_scores = row_scores.size() > 0 ? row_scores.items<const int8_t>() : nullptr;
  asked.row_costs = row_costs.size() > 0 ? row_costs.items<const RowCosts>() : nullptr;
  asked.longest_16 = longest_16.items<const int32_t>();
  asked.codes = codes.data();
  asked.offsets = offsets.items<const int64_t>();
  asked.n_sequences = offsets.count<int64_t>() - 1;
  asked.pairs = pairs.items<const int64_t>();
  asked.n_pairs = pairs.count<int64_t>() / 2;
  asked.window = window;
  asked.way = static_cast<Way>(way);
  asked.kernels = &search_kernels(instructions);
  asked.scores = out.items<int32_t>();
  asked.asked = asked_to_stop;
  const int32_t* const longest = asked.longest_16;
  const bool whole = query_offsets.aligned<int64_t>() && longest_16.aligned<int32_t>() && offsets.aligned<int64_t>() &&
                     pairs.aligned<int64_t>() && out.aligned<int32_t>() && asked.n_queries >= 0 &&
                     asked.n_sequences >= 0 && pairs.count<int64_t>() % 2 == 0;
  const bool good =
      whole && scores.size() == kCodes * kCodes && all_below(queries, kCodes) && all_below(codes, kCodes) &&
      rows_fit(row_scores, row_costs, queries.size(), most_first, most_extend) && costs_fit(most_first, most_extend) &&
      longest_16.count<int32_t>() == asked.n_queries &&
      std::all_of(longest, longest + asked.n_queries, [](int32_t value) { return value >= 0; }) &&
      ascends(asked.query_offsets, asked.n_queries + 1, queries.size()) &&
      ascends(asked.offsets, asked.n_sequences + 1, codes.size()) &&
      lengths_fit(asked.query_offsets, asked.n_queries) && lengths_fit(asked.offsets, asked.n_sequences) &&
      pairs_fit(asked) && asked.first_copy >= kUnchanged && asked.n_copies >= 1 && asked.n_copies <= 1 << 20 &&
      asked.first_copy <= INT32_MAX - asked.n_copies && out.count<int32_t>() == asked.n_pairs * asked.n_copies &&
      window >= 1 && mode_fits(mode, shift, asked.first_bits, row_scores) && first >= extend && costs_fit(first, extend) && asked.threads >= 1 &&
      way >= 0 && way <= 2 && is_width(asked.first_bits) && is_width(asked.last_bits);
  if (!good) {
    PyErr_SetString(PyExc_ValueError, "expected codes below 32, and pairs that name queries and sequences");
    return nullptr;
  }
  if (!without_gil([&] { run(asked); })) return nullptr;
  Py_RETURN_NONE;
}

}  // namespace swsearch
