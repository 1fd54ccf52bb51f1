// module_shuffle: the binding that swsearch/job/shuffled.py calls.
#include "codes.hpp"
#include "module/module.hpp"
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
    if (sequence < 0 || sequence >= n_sequences || shuffle.copies[lane] < 0) return false;
    const int64_t length = shuffle.offsets[sequence + 1] - shuffle.offsets[sequence];
    if (length > shuffle.column_offsets[block + 1] - shuffle.column_offsets[block]) return false;
  }
  return true;
}

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

}  // namespace swsearch
