// runs: whether they fit their sequences.
#include "profiles/runs.hpp"

namespace swsearch {

bool fits(const Runs& runs, int64_t query_length, int64_t n_residues) {
  for (int64_t k = 0; k < runs.count; ++k) {
    if (runs.query_starts[k] < 0 || runs.query_starts[k] > query_length || runs.subject_starts[k] < 0 ||
        runs.subject_starts[k] > n_residues) {
      return false;
    }
    int64_t query_left = query_length - runs.query_starts[k], subject_left = n_residues - runs.subject_starts[k];
    for (int64_t run = runs.offsets[k]; run < runs.offsets[k + 1]; ++run) {
      const uint8_t operation = runs.operations[run];
      const int64_t n = runs.lengths[run];
      if ((operation != 'M' && operation != 'I' && operation != 'D') || n < 1) return false;
      if ((operation != 'D' && n > query_left) || (operation != 'I' && n > subject_left)) return false;
      query_left -= operation != 'D' ? n : 0;
      subject_left -= operation != 'I' ? n : 0;
    }
  }
  return true;
}

}  // namespace swsearch
