"""Compare a search with the peers' programs: hits, scores, E-values, bit scores and alignments.

--program blastx: queries are cut from --genomes, at random, from both strands, with some letters turned into N, and
searched with as `--translate` does. --program tblastn: proteins of --subjects are searched in a database of the
frames of --genomes. Both run without masking and composition adjustment. Where frame, places and path of an alignment
are the same, raw score, E-value and bit score must be equal as printed. No subject of blastx with E <= 0.001 may be
missing, and with its sum statistics E-values of a single alignment should be 1/0.9 times as large, which is counted.
Every other alignment of tblastn must meet, in its frame, one of swsearch that scores at least as much: tblastn looks
near seeds and gives up gaps that cost too much, and swsearch gives each nucleotide of a frame to one alignment.

--program blastp (the default): for every query against all subjects, BLOSUM62, 11/1, without masking and composition
adjustment, with
  ssearch36        every raw score, and the 20 best scores of each query,
  diamond --swipe  the 20 best scores; score, E-value and bit score of every hit up to ten times --evalue,
  blastp           score of every hit that it finds up to --evalue; where its score is the exact one (it is a
                   heuristic), E-value and bit score as `swsearch search --outfmt` prints them, and every other
                   column of "6 std score qlen slen nident positive gaps ppos btop qseq sseq qcovs qcovhsp".
What differs is explained or is an error. A score, because a peer scores X, B, Z, U, O or * by another rule: proved by
rescoring the pair with the peer's rule. An alignment, because several are equally good: proved by adding up
blastp's; and swsearch, made to print blastp's path, must print blastp's columns.

Needs: blastp, diamond, ssearch36 (benchmarks/README.md), biopython. Two to four minutes on two cores; peers' outputs
are kept in --work, if given, and used again. Exit code 1 if a difference is not explained.
Run:   python -m benchmarks.agreement.hits --program blastx --genomes FILE... [--subjects DB.fasta.gz] [--first 100]
       python -m benchmarks.agreement.hits --queries queries20.fasta [--subjects DB.fasta.gz]
           [--out benchmarks/results/agreement_hits.txt]
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from io import StringIO
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt
from Bio.Align import substitution_matrices

import swsearch
from benchmarks.agreement import translated_hits
from benchmarks.support import peers
from benchmarks.support.common import (
    Records,
    arguments,
    data_line,
    finish,
    heading,
    need,
    numbered,
    read,
    residues,
    table,
    write,
)
from benchmarks.support.peers import Printed
from swsearch import report
from swsearch.alignment import PairAlignment
from swsearch.alphabet import PROTEIN
from swsearch.lazy import Lazy
from swsearch.results import Hit, SearchResult
from swsearch.run_info import RunInfo
from swsearch.scoring import Matrix, Scoring, matrix_from_table
from swsearch.statistics.karlin_altschul import published_statistics

TOP = 20
"""Length of the lists of best scores."""

SHOWN = 10
"""Unexplained differences of a check that are listed."""

Scores = npt.NDArray[np.int64]


@dataclass
class Findings:
    """Results of the checks.

    Parameters
    ----------
    rows : list of list
        The table: check, peer, compared, equal, explained, unexplained, explanation.
    bugs : list of str
        Differences without an explanation, and their number.
    """

    rows: list[list[object]] = field(default_factory=list)
    bugs: list[str] = field(default_factory=list)

    def add(self, check: str, peer: str, compared: int, explained: int, bugs: list[str], why: str = "") -> None:
        """Add a row; whatever is neither explained nor unexplained was equal."""
        counts = [compared, compared - explained - len(bugs), explained, len(bugs)]
        self.rows.append([check, peer, *(f"{count:,}" for count in counts), why])
        if bugs:
            self.bugs.append(f"UNEXPLAINED, {check}, {peer}: {len(bugs)}, the first of them:")
            self.bugs += [f"  {case}" for case in bugs[:SHOWN]]


def peer_matrix(peer: str) -> Matrix:
    """Return BLOSUM62 with a peer's rule for ambiguous and rare letters (J is not covered)."""
    matrix = Scoring().matrix
    letters = matrix.alphabet.letters
    rule = {(a, b): float(matrix[a, b]) for a in letters for b in letters}
    aliases = {"diamond": {"U": "X"}, "ssearch36": {"O": "K", "*": "X"}}[peer]
    if peer == "ssearch36":  # B, Z and X as the published matrix has them
        published = substitution_matrices.load("BLOSUM62")
        rule.update({(a, b): float(published[a, b]) for a in published.alphabet for b in published.alphabet})
    for a in letters:
        for b in letters:
            rule[a, b] = rule[aliases.get(a, a), aliases.get(b, b)]
    return matrix_from_table(rule, f"BLOSUM62 as {peer} has it", PROTEIN)


def by_rule_of(peer: str, exact: Scores, queries: Records, subjects: Records) -> Scores:
    """Return the exact scores with those of all odd letters replaced by a peer's rule."""
    odd = re.compile(r"[^ARNDCQEGHILKMFPSTWYV]")
    scores, scoring = exact.copy(), Scoring(peer_matrix(peer))
    columns = [place for place, (_, letters) in enumerate(subjects) if odd.search(letters)]
    rows = [place for place, (_, letters) in enumerate(queries) if odd.search(letters)]
    if columns:
        scores[:, columns] = swsearch.score(queries, [subjects[place] for place in columns], scoring=scoring)
    if rows:
        scores[rows] = swsearch.score([queries[place] for place in rows], subjects, scoring=scoring)
    return scores


def compare_scores(
    found: Findings, check: str, peer: str, theirs: dict[tuple[int, int], int], exact: Scores, ruled: Scores
) -> None:
    """Compare single scores; a difference is explained if the peer's rule gives its score."""
    differing = {pair: score for pair, score in theirs.items() if score != exact[pair]}
    wrong = [
        f"q{pair[0]} x s{pair[1]}: swsearch {exact[pair]}, {peer} {score}, by its rule {ruled[pair]}"
        for pair, score in differing.items()
        if score != ruled[pair]
    ]
    off = max((abs(score - int(exact[pair])) for pair, score in differing.items()), default=0)
    why = f"{peer}'s scores of X, B, Z; largest difference {off}" if len(differing) > len(wrong) else ""
    found.add(check, peer, len(theirs), len(differing) - len(wrong), wrong, why)


def compare_tops(found: Findings, peer: str, lists: list[list[int]], exact: Scores, ruled: Scores) -> None:
    """Compare the best scores of each query, as sorted lists."""
    explained, wrong = 0, []
    for query, row in enumerate(lists):
        best, by_rule = (sorted(scores[query].tolist(), reverse=True)[:TOP] for scores in (exact, ruled))
        theirs = sorted(row, reverse=True)[:TOP]
        if theirs != best and theirs == by_rule:
            explained += 1
        elif theirs != best:
            wrong.append(f"q{query}: swsearch {best}, {peer} {theirs}")
    why = f"{peer}'s scores of X, B, Z" if explained else ""
    found.add(f"lists of the {TOP} best scores", peer, len(lists), explained, wrong, why)


def compare_sets(found: Findings, check: str, hits: Printed, among: Printed) -> None:
    """Check that every hit is among others."""
    found.add(check, "", len(hits), 0, [f"q{q} x s{s}: {hits[q, s]['score']}" for q, s in hits.keys() - among.keys()])


def round_evalue(evalue: float) -> float:
    """Round to three digits as diamond prints; below the smallest normal double, where digits are lost, to 0."""
    return float(f"{evalue:.2e}") if evalue >= sys.float_info.min else 0.0


def compare_diamond(found: Findings, theirs: Printed, lengths: tuple[list[int], list[int]], n_residues: int) -> None:
    """Compare E-values and bit scores as numbers, at the digits that diamond prints."""
    statistics = published_statistics(Scoring(), "local")
    assert statistics is not None
    wrong: dict[str, list[str]] = {"E-value": [], "bit score": []}
    for (query, subject), shown in theirs.items():
        score = int(shown["score"])
        evalue = statistics.evalues([score], lengths[0][query], [lengths[1][subject]], n_residues)[0]
        bits = statistics.bit_score(score)
        row = shown | {"evalue": str(round_evalue(float(shown["evalue"])))}
        rounded = {"evalue": round_evalue(evalue), "bitscore": float(int(bits) if bits > 99.9 else f"{bits:.1f}")}
        for what, column, value in (("E-value", "evalue", evalue), ("bit score", "bitscore", bits)):
            if rounded[column] != float(row[column]):
                wrong[what].append(f"q{query} x s{subject}: score {score}, swsearch {value}, diamond {row[column]}")
    for what, cases in wrong.items():
        found.add(f"{what}, same score, its digits", "diamond", len(theirs), 0, cases)


def path_of(row: dict[str, str], query: str, subject: str) -> PairAlignment:
    """Return the alignment that a printed row shows."""
    ops = ["I" if b == "-" else "D" if a == "-" else "M" for a, b in zip(row["qseq"], row["sseq"], strict=True)]
    cigar = tuple((len(list(run)), op) for op, run in groupby(ops))
    codes = [PROTEIN.encode(letters) for letters in (query, subject)]
    starts = int(row["qstart"]) - 1, int(row["sstart"]) - 1
    return PairAlignment(codes[0], codes[1], Scoring(), int(row["score"]), *starts, cigar)


def printed(pair: PairAlignment, row: dict[str, str], subjects: Records) -> dict[str, str]:
    """Have swsearch's own writer print an alignment."""
    m, n, total = len(pair.query), len(pair.subject), residues(subjects)
    statistics = published_statistics(pair.scoring, "local")
    assert statistics is not None
    evalue = float(statistics.evalues([pair.score], m, [n], total)[0])
    names = row["qaccver"], row["saccver"]
    bits = statistics.bit_score(pair.score)
    hit = Hit(names[0], names[1], "", int(names[1][1:]), m, n, pair.score, bits, evalue, Lazy.of_value(pair))
    size = ("db", len(subjects), total)
    result = SearchResult(names[0], "", m, [hit], pair.scoring, "local", statistics, *size, total)
    stream = StringIO()
    writer = report.create_writer(f"6 std {peers.EXTRA}", stream)
    writer.begin(RunInfo("0", *size, pair.scoring, "local", statistics, 10.0, 500))
    writer.write(result)
    writer.end()
    return next(iter(peers.parse(stream.getvalue(), peers.COLUMNS).values()))


def compare_blastp(found: Findings, ours: Printed, theirs: Printed, records: tuple[Records, Records]) -> Counter[str]:
    """Compare printed rows; return in which columns alignments differ, and how often."""
    same = {pair: row for pair, row in theirs.items() if pair in ours and row["score"] == ours[pair]["score"]}
    for what, column in (("E-value", "evalue"), ("bit score", "bitscore")):
        wrong = [
            f"q{pair[0]} x s{pair[1]}: score {row['score']}, swsearch {ours[pair][column]}, blastp {row[column]}"
            for pair, row in same.items()
            if row[column] != ours[pair][column]
        ]
        found.add(f"{what}, same score, as printed", "blastp", len(same), 0, wrong)

    columns: Counter[str] = Counter()
    ties, wrong, misprinted = 0, [], []
    for (query, subject), row in same.items():
        mine = ours[query, subject]
        differing = [column for column in peers.COLUMNS if mine[column] != row[column]]
        letters = records[0][query][1], records[1][subject][1]
        path = path_of(row, *letters)
        if differing:
            columns.update(differing)
            optimal = {path.recompute_score(), path_of(mine, *letters).recompute_score()} == {int(row["score"])}
            if optimal and {"btop", "qstart", "sstart"} & set(differing):
                ties += 1
            else:
                values = [f"{column} {mine[column][:40]} / {row[column][:40]}" for column in differing]
                wrong.append(f"q{query} x s{subject}: {'; '.join(values)}")
        again = printed(path, row, records[1])
        values = [f"{c} {again[c][:40]} / {row[c][:40]}" for c in peers.COLUMNS if again[c] != row[c]]
        if values:
            misprinted.append(f"q{query} x s{subject}: {'; '.join(values)}")
    why = "another alignment with the same score" if ties else ""
    found.add("whole row, same score", "blastp", len(same), ties, wrong, why)
    found.add("blastp's alignment printed by swsearch", "blastp", len(same), 0, misprinted)
    return columns


def blastp_misses(found: Findings, theirs: Printed, exact: Scores, ours: Printed, evalue: float) -> str:
    """Compare blastp's scores with the exact ones, which it may not reach but must not pass."""
    lower = {pair: int(exact[pair]) - int(row["score"]) for pair, row in theirs.items()}
    above = [f"q{q} x s{s}: exact {exact[q, s]}, blastp {exact[q, s] - d}" for (q, s), d in lower.items() if d < 0]
    below = [pair for pair, difference in lower.items() if difference > 0]
    why = "blastp is a heuristic: below the exact score" if below else ""
    found.add("raw score", "blastp", len(theirs), len(below), above, why)
    worst = max(lower, key=lambda pair: lower[pair])
    good = [pair for pair, row in ours.items() if float(row["evalue"]) <= evalue]
    strong = [pair for pair in good if float(ours[pair]["evalue"]) <= 1e-3]
    missed, missed_strong = (sum(pair not in theirs for pair in pairs) for pairs in (good, strong))
    return (
        f"blastp scores {len(below)} of {len(theirs)} hits below the exact score, by up to {lower[worst]} "
        f"(q{worst[0]} x s{worst[1]}: {exact[worst] - lower[worst]}, exact {exact[worst]}); of {len(good)} hits with "
        f"exact E <= {evalue:g} it misses {missed}, of {len(strong)} with E <= 0.001 it misses {missed_strong}"
    )


def run(queries: Records, subjects: Records, folder: Path, evalue: float) -> list[str]:
    """Run every program and check; return the report's lines."""
    query_file, subject_file = write(folder / "q.fasta", queries), write(folder / "s.fasta", subjects)
    exact: Scores = swsearch.score(queries, subjects).astype(np.int64)
    ours = peers.swsearch_hits(query_file, subject_file, folder, 10 * evalue)
    diamond = peers.diamond_hits(query_file, subject_file, folder, 10 * evalue)
    blastp = peers.blastp_hits(query_file, subject_file, folder, evalue)
    ssearch36 = peers.ssearch36_scores(query_file, subject_file, folder, exact.shape)

    found = Findings()
    odd_pairs = [
        f"q{q} x s{s}: {exact[q, s]}, printed {row['score']}"
        for (q, s), row in ours.items()
        if int(row["score"]) != exact[q, s]
    ]
    found.add("printed scores against swsearch.score", "swsearch", len(ours), 0, odd_pairs)
    ruled = by_rule_of("ssearch36", exact, queries, subjects)
    everything = {(int(q), int(s)): int(ssearch36[q, s]) for q, s in np.ndindex(exact.shape)}
    compare_scores(found, "every raw score", "ssearch36", everything, exact, ruled)
    compare_tops(found, "ssearch36", [row.tolist() for row in ssearch36], exact, ruled)

    ruled = by_rule_of("diamond", exact, queries, subjects)
    scores = {pair: int(row["score"]) for pair, row in diamond.items()}
    compare_scores(found, f"raw scores, E <= {10 * evalue:g}", "diamond", scores, exact, ruled)
    lists = [[score for (q, _), score in scores.items() if q == query] for query in range(len(queries))]
    compare_tops(found, "diamond", lists, exact, ruled)
    compare_sets(found, "swsearch's hits are diamond's", ours, diamond)
    compare_sets(found, "diamond's hits are swsearch's", diamond, ours)
    compare_sets(found, "blastp's hits are swsearch's", blastp, ours)
    lengths = [len(letters) for _, letters in queries], [len(letters) for _, letters in subjects]
    compare_diamond(found, diamond, lengths, residues(subjects))

    note = blastp_misses(found, blastp, exact, ours, evalue)
    columns = compare_blastp(found, ours, blastp, (queries, subjects))
    counted = ", ".join(f"{name} {count}" for name, count in columns.most_common()) or "none"
    heads = ["check", "peer", "compared", "equal", "explained", "unexplained", "explanation"]
    lines = [note, f"columns that differ between equally good alignments: {counted}", *found.bugs, ""]
    return lines + table(heads, found.rows)


PROGRAMS = {"blastp": (20, 10.0), "blastx": (100, 10.0), "tblastn": (50, 0.1)}
"""How many queries are taken, and the threshold, by default."""


def main() -> None:
    parser = arguments(__doc__)
    add = parser.add_argument
    add("--program", choices=PROGRAMS, default="blastp", help="default %(default)s")
    add("--genomes", type=Path, nargs="+", default=[], help="blastx, tblastn: FASTA, plain or xz")
    add("--genetic-code", type=int, default=11, help="tblastn: default %(default)s")
    add("--evalue", type=float, help="threshold, default 10, of tblastn 0.1")
    add("--work", type=Path, help="blastp: folder that keeps what the peers print (must exist)")
    parser.set_defaults(first=None)
    options = parser.parse_args()
    first, evalue = PROGRAMS[options.program]
    options.first, options.evalue = options.first or first, options.evalue or evalue
    if options.program != "blastp" and not options.genomes:
        parser.error(f"--program {options.program}: needs --genomes FILE...")
    names = ["blastp", "diamond", "ssearch36"] if options.program == "blastp" else [options.program, "biopython"]
    with tempfile.TemporaryDirectory(prefix="swsearch-hits-") as name:
        if options.program == "blastp":
            need("blastp", "makeblastdb", "diamond", "ssearch36")
            queries, subjects = read(options.queries, options.first), numbered(read(options.subjects), "s")
            lines = [data_line(queries, subjects, options)]
            lines += run(numbered(queries, "q"), subjects, options.work or Path(name), options.evalue)
            wrong = [line for line in lines if line.startswith("UNEXPLAINED")]
        else:
            compare = translated_hits.blastx if options.program == "blastx" else translated_hits.tblastn
            lines, wrong = compare(options, Path(name))
            lines += wrong[:SHOWN]
    finish([*heading(f"{__file__} {options.program}", names), *lines], options.out)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
