// module_pairs: the bindings that swsearch/engines/cpu/tracing.py and swsearch/pipeline/pairs.py call.
#include "module/module.hpp"

#include <algorithm>
#include <cstring>

#include "isa/kernels.hpp"
#include "pairs/further.hpp"
#include "pairs/many.hpp"

namespace swsearch {

namespace {

constexpr int64_t kReach = int64_t{1} << 30;  // four times REACH_LIMIT of swsearch/engines/cpu/tracing.py
constexpr int kMostThreads = 1024;            // each has tables of its own

PyObject* cigar_of(const Aligned& aligned) {
  PyObject* cigar = PyTuple_New(static_cast<Py_ssize_t>(aligned.cigar.size()));
  if (cigar == nullptr) return nullptr;
  Py_ssize_t place = 0;
  for (const auto& [length, operation] : aligned.cigar) {
    PyObject* run = Py_BuildValue("(LC)", static_cast<long long>(length), static_cast<int>(operation));
    if (run == nullptr || PyTuple_SetItem(cigar, place++, run) != 0) {
      Py_DECREF(cigar);
      return nullptr;
    }
  }
  return cigar;
}

PyObject* result_of(const Aligned& aligned) {
  PyObject* cigar = cigar_of(aligned);
  if (cigar == nullptr) return nullptr;
  return Py_BuildValue("(LLLNLi)", static_cast<long long>(aligned.score), static_cast<long long>(aligned.i),
                       static_cast<long long>(aligned.j), cigar, static_cast<long long>(aligned.cells), aligned.passes);
}

// Scores and gap costs by position of the queries, which functions take last; both may be left out or empty.
struct Own {
  Buffer rows, gaps;
  int most_open = 0, most_extend = 0;  // of the gap costs

  // Whether they are those of so many residues, scores no more than `max_score`; else Python's exception is set.
  bool check(Py_ssize_t residues, int max_score) {
    const int8_t* scores = rows.items<const int8_t>();
    const int16_t* costs = gaps.items<const int16_t>();
    bool fine = (rows.size() == 0 || rows.size() == residues * kCodes) &&
                (gaps.size() == 0 || (rows.size() > 0 && gaps.count<int16_t>() == residues * kGapCosts)) &&
                gaps.aligned<int16_t>();
    fine = fine && (rows.size() == 0 || *std::max_element(scores, scores + rows.size()) <= max_score);
    for (Py_ssize_t k = 0; fine && k < gaps.count<int16_t>(); ++k) {
      fine = costs[k] >= 0;
      int& most = k % 2 == 0 ? most_open : most_extend;
      most = std::max<int>(most, costs[k]);
    }
    if (!fine) PyErr_SetString(PyExc_ValueError, "expected 32 scores and four costs for each residue of the queries");
    return fine;
  }

  // Hand them to a problem. Scores are laid out by letter into `by_letter`, if it is given, which must stay there.
  void give(Problem& problem, std::vector<int8_t>* by_letter) const {
    if (rows.size() == 0) return;
    const Py_ssize_t residues = rows.size() / kCodes;
    problem.rows = rows.items<const int8_t>();
    problem.gaps = gaps.size() ? gaps.items<const int16_t>() : nullptr;
    if (by_letter == nullptr) return;
    by_letter->resize(static_cast<size_t>(rows.size()));
    for (Py_ssize_t k = 0; k < residues; ++k) {
      for (int letter = 0; letter < kCodes; ++letter) {
        (*by_letter)[static_cast<size_t>(letter * residues + k)] = problem.rows[k * kCodes + letter];
      }
    }
    problem.by_letter = by_letter->data();
    problem.stride = residues;
  }
};

// The arguments that align and align_many share: y* scores, max_score, open, extend, local, ends, with_path, memory,
// threads, tile, beam, instructions, and scores and gap costs by position.
struct Common {
  Buffer scores;
  int max_score, open, extend, local, ends, with_path, threads, tile;
  long long memory, beam;
  const char* name;
  Instructions instructions;
  Own own;

  // False with Python's exception set where something is wrong.
  bool check(const Buffer& queries) {
    const int8_t* table = scores.items<const int8_t>();
    const bool fine = scores.size() == kCodes * kCodes && threads >= 1 && tile >= 0 && tile <= 4096 &&
                      costs_fit(open, extend) && max_score >= 0 && max_score <= INT8_MAX && memory >= 0 &&
                      beam >= 0 && beam < kReach;
    if (!fine || max_score < *std::max_element(table, table + scores.size())) {
      PyErr_SetString(PyExc_ValueError,
                      "expected a 32 x 32 table, the greatest score in it, and sizes and costs that are not negative");
      return false;
    }
    threads = std::min(threads, kMostThreads);
    return own.check(queries.size(), max_score) && instructions_of(name, instructions);
  }
  // Whether no cell of a pair of these lengths can leave 32 bits: no score is higher than all pairs of residues at the
  // best, none lower than the gaps that stand for both sequences.
  bool reaches(int64_t m, int64_t n) const {
    const int64_t opening = std::max(open, own.most_open), extending = std::max(extend, own.most_extend);
    const auto within = [&](int64_t length) { return length < kReach && opening + length * extending < kReach; };
    const bool borders = !(ends & 1) || !(ends & 2);  // the query's residues beside the subject's
    if (within(n) && (!borders || within(m)) && max_score * std::min(m, n) < kReach) return true;
    PyErr_SetString(PyExc_ValueError, "expected sequences and costs whose scores are within 2^30");
    return false;
  }
  Problem problem() const {
    return {nullptr, nullptr, 0, 0, scores.items<const int8_t>(), max_score, open, extend, local != 0,
            (ends & 1) != 0, (ends & 2) != 0, (ends & 4) != 0, (ends & 8) != 0, {}, {}};
  }
  Settings settings() const { return {tile, memory, threads, beam, &pair_kernels(instructions), asked_to_stop}; }
};

bool check_codes(const Buffer& query, const Buffer& subject) {
  if (all_below(query, kCodes) && all_below(subject, kCodes)) return true;
  PyErr_SetString(PyExc_ValueError, "expected codes below 32");
  return false;
}

bool check_places(const Buffer& places, const Buffer& queries, const Buffer& subjects) {
  const bool within = places_within(places, queries, subjects);
  if (within && places_below(places, queries, subjects, kCodes)) return true;
  PyErr_SetString(PyExc_ValueError,
                  within ? "expected codes below 32" : "expected places within the codes, four numbers a pair");
  return false;
}

// (numbers, lengths, operations), all bytes: score, start in the query and in the subject, number of runs and bytes
// needed (int64) of each pair; length (int64) and letter of each run.
PyObject* result_of(const std::vector<Outcome>& outcomes) {
  size_t n_runs = 0;
  for (const Outcome& each : outcomes) n_runs += each.aligned.cigar.size();
  const auto bytes = [](size_t size) { return PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)); };
  PyObject* const parts[] = {bytes(outcomes.size() * 5 * sizeof(int64_t)), bytes(n_runs * sizeof(int64_t)),
                             bytes(n_runs)};
  if (parts[0] == nullptr || parts[1] == nullptr || parts[2] == nullptr) {
    for (PyObject* part : parts) Py_XDECREF(part);
    return nullptr;
  }
  char* number = PyBytes_AsString(parts[0]);
  char* length = PyBytes_AsString(parts[1]);
  char* operation = PyBytes_AsString(parts[2]);
  for (const Outcome& each : outcomes) {
    const Aligned& found = each.aligned;
    const int64_t numbers[] = {found.score, found.i, found.j, static_cast<int64_t>(found.cigar.size()), each.needed};
    std::memcpy(number, numbers, sizeof numbers);
    number += sizeof numbers;
    for (const auto& [count, letter] : found.cigar) {
      std::memcpy(length, &count, sizeof count);
      length += sizeof count;
      *operation++ = letter;
    }
  }
  return Py_BuildValue("(NNN)", parts[0], parts[1], parts[2]);
}

}  // namespace

PyObject* py_align(PyObject*, PyObject* arguments) {
  Buffer query, subject;
  Common common;
  if (!PyArg_ParseTuple(arguments, "y*y*y*iiiiiiLiiLs|y*y*", &query.view, &subject.view, &common.scores.view,
                        &common.max_score, &common.open, &common.extend, &common.local, &common.ends,
                        &common.with_path, &common.memory, &common.threads, &common.tile, &common.beam,
                        &common.name, &common.own.rows.view, &common.own.gaps.view) ||
      !common.check(query) || !check_codes(query, subject) || !common.reaches(query.size(), subject.size())) {
    return nullptr;
  }
  Problem problem = common.problem();
  problem.query = query.data();
  problem.m = query.size();
  problem.subject = subject.data();
  problem.n = subject.size();
  Aligned aligned{};
  long long needed = 0;
  const bool done = without_gil([&] {
    try {
      std::vector<int8_t> by_letter;
      common.own.give(problem, &by_letter);
      prepare(problem);
      aligned = align(problem, common.settings(), common.with_path != 0);
    } catch (const MemoryNeeded& error) {
      needed = error.bytes;
    }
  });
  if (!done) return nullptr;
  return needed > 0 ? PyLong_FromLongLong(needed) : result_of(aligned);
}

PyObject* py_align_many(PyObject*, PyObject* arguments) {
  Buffer queries, subjects, places, known;
  Common common;
  if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*iiiiiiLiiLs|y*y*", &queries.view, &subjects.view, &places.view, &known.view,
                        &common.scores.view, &common.max_score, &common.open, &common.extend, &common.local,
                        &common.ends, &common.with_path, &common.memory, &common.threads, &common.tile, &common.beam,
                        &common.name, &common.own.rows.view, &common.own.gaps.view) ||
      !common.check(queries) || !check_places(places, queries, subjects)) {
    return nullptr;
  }
  const Py_ssize_t count = places.count<int64_t>() / 4;
  for (Py_ssize_t k = 0; k < count; ++k) {
    if (!common.reaches(places.items<const int64_t>()[4 * k + 1], places.items<const int64_t>()[4 * k + 3])) {
      return nullptr;
    }
  }
  bool known_fit = known.size() == 0 || (known.size() == count * static_cast<Py_ssize_t>(sizeof(int64_t)) &&
                                         known.aligned<int64_t>());
  for (Py_ssize_t k = 0; known_fit && k < known.count<int64_t>(); ++k) {
    const int64_t score = known.items<const int64_t>()[k];
    known_fit = score == INT64_MIN || (score > -4 * kReach && score < 4 * kReach);
  }
  if (!known_fit) {
    PyErr_SetString(PyExc_ValueError, "expected a known score for each pair, of 32 bits, or none");
    return nullptr;
  }
  Many many{queries.data(), subjects.data(), places.items<const int64_t>(),
                  known.size() ? known.items<const int64_t>() : nullptr, count, common.problem(), common.settings(),
                  common.with_path != 0};
  std::vector<Outcome> outcomes;
  const bool done = without_gil([&] {
    std::vector<int8_t> by_letter;
    common.own.give(many.costs, &by_letter);
    outcomes = align_many(many);
  });
  if (!done) return nullptr;
  return result_of(outcomes);
}

PyObject* py_align_further(PyObject*, PyObject* arguments) {
  Buffer query, subject, scores, pairs;
  Own own;
  int open = 0, extend = 0;
  long long least = 0;
  Py_ssize_t most = 0;
  if (!PyArg_ParseTuple(arguments, "y*y*y*y*iiLn|y*y*", &query.view, &subject.view, &scores.view, &pairs.view, &open,
                        &extend, &least, &most, &own.rows.view, &own.gaps.view) ||
      !check_codes(query, subject) || !own.check(query.size(), INT8_MAX)) {
    return nullptr;
  }
  const Py_ssize_t items = pairs.count<int64_t>();
  bool fine = scores.size() == kCodes * kCodes && costs_fit(open, extend) && least >= 1 && most >= 0 &&
              items % 2 == 0 && pairs.size() % static_cast<Py_ssize_t>(sizeof(int64_t)) == 0 && pairs.aligned<int64_t>();
  for (Py_ssize_t k = 0; fine && k < items; ++k) {
    const int64_t place = pairs.items<const int64_t>()[k];
    fine = place >= 0 && place < (k % 2 == 0 ? query.size() : subject.size());
  }
  if (!fine) {
    PyErr_SetString(PyExc_ValueError, "expected a 32 x 32 table, costs that are not negative and pairs of residues");
    return nullptr;
  }
  Problem problem{query.data(), subject.data(), query.size(), subject.size(), scores.items<const int8_t>(), 0,
                        open, extend, true, true, true, true, true, {}, {}};
  own.give(problem, nullptr);
  std::vector<Aligned> found;
  const bool done = without_gil([&] {
    Used used(static_cast<size_t>(problem.m));
    for (Py_ssize_t k = 0; k < items; k += 2) {
      const int64_t* pair = pairs.items<const int64_t>() + k;
      use(used, pair[0], pair[1], {{1, 'M'}});
    }
    found = further_alignments(problem, used, least, most, asked_to_stop);
  });
  if (!done) return nullptr;
  PyObject* all = PyList_New(0);
  for (const Aligned& each : found) {
    PyObject* one = all == nullptr ? nullptr : result_of(each);
    if (one == nullptr || PyList_Append(all, one) != 0) Py_CLEAR(all);
    Py_XDECREF(one);
  }
  return all;
}

}  // namespace swsearch
