"""Output of `swsearch align`, read back by programs that others wrote."""

import io
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from Bio import Align, AlignIO
from hypothesis import given
from hypothesis import strategies as st

from support.cases import any_codes, modes_with_ends, scorings
from support.pair_checks import relatives, rescore
from swsearch.alphabet import DNA, PROTEIN
from swsearch.engines.cpu.pairs import align_codes
from swsearch.errors import InputError, OptionError
from swsearch.inputs import Query
from swsearch.options.kinds import MODES
from swsearch.recurrence import Recurrence
from swsearch.report.pairs import PAIR_FORMATS, PairRun, ScoredPair, create_pair_writer
from swsearch.scoring import Ends, Scoring, dna_matrix

DNA_SCORING = Scoring(dna_matrix(), 10, 1)


def make_run(queries, subjects, scoring, mode="global", ends=None, in_order=False):
    alphabet = scoring.matrix.alphabet

    def encode(sequences, what):
        named = sequences if isinstance(sequences, dict) else {f"{what}{k}": s for k, s in enumerate(sequences, 1)}
        return [Query(name, "", alphabet.encode(s) if isinstance(s, str) else s) for name, s in named.items()]

    encoded = encode(queries, "q")
    kind = "order" if in_order else "all"
    return PairRun(encoded, encode(subjects, "s"), kind, Recurrence(scoring, mode, ends), "1.2.3")


def written(name, run):
    """Return a run's text and its alignments."""
    stream, found = io.StringIO(), []
    writer = create_pair_writer(name, stream)
    writer.begin(run)
    for query, subject in run:
        pair = align_codes(query.codes, subject.codes, run.recurrence)
        writer.write(ScoredPair(query, subject, pair if writer.needs_alignments else pair.score))
        found.append(pair)
    writer.end()
    return stream.getvalue(), found


def block_text(run, query, subject, pair):
    """Return the head and the block of one pair."""
    stream = io.StringIO()
    writer = create_pair_writer("pairwise", stream)
    writer.begin(run)
    writer.write(ScoredPair(query, subject, pair))
    return stream.getvalue()


@pytest.fixture(scope="module", params=[(mode, kind) for mode in MODES for kind in ("dna", "protein")], ids="-".join)
def run(request):
    """Queries with relatives among the subjects, and others that share their last residues only."""
    mode, kind = request.param
    generator = np.random.default_rng(7)
    letters, scoring = (4, DNA_SCORING) if kind == "dna" else (20, Scoring())
    core = generator.integers(0, letters, 20).astype(np.uint8)
    several = [[np.append(s, core) for s in relatives(generator, n, letters)] for n in (12, 130, 300)]
    queries, subjects = zip(*several, strict=True)
    return make_run(queries, [*subjects, np.append(queries[2][40:], core)], scoring, mode)


def columns(pair):
    """Return pairs of residue numbers of an alignment."""
    i, j, found = pair.query_start, pair.subject_start, []
    for n, op in pair.cigar:
        if op == "M":
            found += [(i + k, j + k) for k in range(n)]
        i += n if op != "D" else 0
        j += n if op != "I" else 0
    return found


def test_biopython_reads_the_blocks(run):
    text, pairs = written("pairwise", run)
    compared = 0
    for pair, (query, subject) in zip(pairs, run, strict=True):
        firsts = [row[:50].replace("-", "") for row in (pair.query_row(), pair.subject_row())]
        if min(map(len, firsts)) == 1:
            continue  # Biopython 1.88 takes a first line of one residue, from 1 to 1, for a reverse strand
        (alignment,) = Align.parse(io.StringIO(block_text(run, query, subject, pair)), "emboss")
        notes = alignment.annotations
        assert (notes["Score"], alignment.length) == (pair.score, pair.length)
        assert (notes["Identity"], notes["Similarity"], notes["Gaps"]) == (pair.identities, pair.positives, pair.gaps)
        assert (alignment[0], alignment[1]) == (pair.query_row(), pair.subject_row())
        assert alignment.coordinates[:, 0].tolist() == [pair.query_start, pair.subject_start]
        assert notes["Gap_penalty"] == run.recurrence.scoring.gap_first
        compared += 1
    assert compared >= len(pairs) - 2
    assert len(list(AlignIO.parse(io.StringIO(text), "emboss"))) == len(pairs)
    for alignment, pair in zip(AlignIO.parse(io.StringIO(text), "emboss"), pairs, strict=True):
        assert [str(record.seq) for record in alignment] == [pair.query_row(), pair.subject_row()]


def test_pysam_reads_the_sam(run, tmp_path):
    pysam = pytest.importorskip("pysam", reason="pysam is not installed")
    text, pairs = written("sam", run)
    (tmp_path / "x.sam").write_text(text)
    with pysam.AlignmentFile(str(tmp_path / "x.sam"), check_sq=False) as file:
        assert file.references == tuple(subject.identifier for subject in run.subjects)
        assert file.lengths == tuple(len(subject.codes) for subject in run.subjects)
        reads = list(file)
    decode = run.recurrence.scoring.matrix.alphabet.decode
    assert len(reads) == len(pairs)
    for read, pair, (query, subject) in zip(reads, pairs, run, strict=True):
        assert (read.query_name, read.reference_name) == (query.identifier, subject.identifier)
        assert (read.query_alignment_start, read.query_alignment_end) == (pair.query_start, pair.query_end)
        assert (read.reference_start, read.reference_end) == (pair.subject_start, pair.subject_end)
        assert (read.get_tag("AS"), read.get_tag("NM")) == (pair.score, pair.mismatches + pair.gaps)
        assert read.get_aligned_pairs(matches_only=True) == columns(pair)
        assert (
            rescore(query.codes, subject.codes, run.recurrence.scoring, read.cigarstring, 0, read.reference_start)
            == pair.score
        )
        if run.recurrence.scoring.matrix.alphabet is DNA:  # it holds reads in codes for bases
            assert read.query_sequence == decode(pair.query)
            assert read.get_reference_sequence().upper() == decode(
                pair.subject[pair.subject_start : pair.subject_end]
            )
    assert [read.is_secondary for read in reads] == [k % len(run.subjects) > 0 for k in range(len(reads))]


needs_samtools = pytest.mark.skipif(shutil.which("samtools") is None, reason="samtools is not installed")


@pytest.mark.peer
@needs_samtools
def test_samtools_reads_the_sam(run, tmp_path):
    text = written("sam", run)[0]
    (tmp_path / "x.sam").write_text(text)
    done = subprocess.run(
        ["samtools", "view", "-h", "--no-PG", tmp_path / "x.sam"], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""

    def without_sequences(lines):
        return re.sub(r"\t[A-Z]+\t\*(\tAS)", r"\1", lines)

    # of proteins it keeps no letters
    assert without_sequences(done.stdout) == without_sequences(text)
    assert without_sequences(text) != text
    if run.recurrence.scoring.matrix.alphabet is DNA:
        assert done.stdout == text
        # calmd finds NM and MD again from the subject's letters
        fasta = tmp_path / "s.fasta"
        decode = DNA.decode
        fasta.write_text("".join(f">{subject.identifier}\n{decode(subject.codes)}\n" for subject in run.subjects))
        done = subprocess.run(
            ["samtools", "calmd", "--no-PG", tmp_path / "x.sam", fasta], capture_output=True, text=True, check=True
        )
        assert done.stdout == text
        assert "different" not in done.stderr


def test_paf_has_twelve_columns_and_its_tags(run):
    text, pairs = written("paf", run)
    for line, pair, (query, subject) in zip(text.splitlines(), pairs, run, strict=True):
        fields = line.split("\t")
        assert fields[:9] == list(
            map(
                str,
                (
                    query.identifier, len(query.codes), pair.query_start, pair.query_end, "+",
                    subject.identifier, len(subject.codes), pair.subject_start, pair.subject_end,
                ),
            )
        )  # fmt: skip
        assert [int(field) for field in fields[9:12]] == [pair.identities, pair.length, 255]
        tags = dict(field.split(":", 1) for field in fields[12:])
        assert (tags["AS"], tags["NM"]) == (f"i:{pair.score}", f"i:{pair.mismatches + pair.gaps}")
        cigar = tags["cg"].removeprefix("Z:")
        assert (
            rescore(query.codes, subject.codes, run.recurrence.scoring, cigar, int(fields[2]), int(fields[7]))
            == pair.score
        )


def test_cigar_json_and_score_say_the_same(run):
    lines, pairs = written("cigar", run)
    records = [json.loads(line) for line in written("jsonl", run)[0].splitlines()]
    scores = written("score", run)[0].splitlines()
    for line, record, score, pair in zip(lines.splitlines(), records, scores, pairs, strict=True):
        fields = line.split("\t")
        assert fields[:3] == score.split("\t")
        assert [int(field) for field in fields[2:7]] == [
            pair.score, pair.query_start + 1, pair.query_end, pair.subject_start + 1, pair.subject_end,
        ]  # fmt: skip
        assert fields[7] == record["cigar"] == pair.cigar_string
        assert (record["query"]["id"], record["score"]) == (fields[0], pair.score)
        assert (record["query_row"], record["midline"], record["subject_row"]) == pair.rows()
        assert record["free_ends"] == ([] if run.recurrence.mode == "global" else Ends().names())


@given(st.lists(any_codes(12), min_size=1, max_size=2), st.lists(any_codes(12), min_size=1, max_size=2), scorings,
       modes_with_ends, st.sampled_from([*PAIR_FORMATS]))  # fmt: skip
def test_any_pair_can_be_written(queries, subjects, scoring, mode_and_ends, name):
    stop = PROTEIN.letters.index("*")
    queries = [query[query != stop] for query in queries]  # SAM refuses them
    run = make_run(queries, subjects, scoring, *mode_and_ends)
    text, pairs = written(name, run)
    lines = [line for line in text.splitlines() if not line.startswith("@")]
    if name == "sam":
        for line, pair, (query, subject) in zip(lines, pairs, run, strict=True):
            fields = line.split("\t")
            assert int(fields[1]) & 4 == (0 if "M" in pair.cigar_string else 4)
            if "M" in pair.cigar_string:
                start = int(fields[3]) - 1
                assert rescore(query.codes, subject.codes, scoring, fields[5], 0, start) == pair.score
                used = sum(int(n) for n, op in re.findall(r"(\d+)([MIS])", fields[5]))
                assert used == len(query.codes)
    elif name != "pairwise":
        assert len(lines) == len(pairs)
        assert all(len(line.split("\t")) == len(lines[0].split("\t")) for line in lines if name == "cigar")


def test_nothing_aligned():
    run = make_run(["MKV", ""], ["WWW"], Scoring(), "local")
    assert (
        written("paf", run)[0]
        == "q1\t3\t0\t0\t*\t*\t0\t0\t0\t0\t0\t0\tAS:i:0\nq2\t0\t0\t0\t*\t*\t0\t0\t0\t0\t0\t0\tAS:i:0\n"
    )
    body = [line for line in written("sam", run)[0].splitlines() if line[0] != "@"]
    assert body == ["q1\t4\t*\t0\t255\t*\t*\t0\t0\tMKV\t*\tAS:i:0", "q2\t4\t*\t0\t255\t*\t*\t0\t0\t*\t*\tAS:i:0"]
    assert "# Length: 0\n" in written("pairwise", run)[0]
    assert written("cigar", run)[0].splitlines()[0] == "q1\ts1\t0\t1\t0\t1\t0\t*"
    records = [json.loads(line) for line in written("jsonl", run)[0].splitlines()]
    assert [(record["score"], record["cigar"]) for record in records] == [(0, "")] * 2


def test_what_sam_cannot_hold_is_told_before_anything_is_written():
    def refusal(queries, subjects):
        with pytest.raises(InputError) as caught:
            create_pair_writer("sam", io.StringIO()).begin(make_run(queries, subjects, Scoring()))
        return str(caught.value)

    assert "query 'x' has '*' at position 3" in refusal({"x": "MK*V"}, {"s": "MKV"})
    assert "subject 'a,b' has a name that SAM does not allow for a reference" in refusal({"q": "MK"}, {"a,b": "MK"})
    assert "query '@q' has a name that SAM does not allow for a read" in refusal({"@q": "MK"}, {"s": "MK"})
    run = make_run(["MK"], ["MK", "MK"], Scoring())
    twins = PairRun(run.queries, [run.subjects[0]] * 2, "all", run.recurrence, run.version)
    with pytest.raises(InputError, match="2 subjects are named 's1', expected unique names"):
        create_pair_writer("sam", io.StringIO()).begin(twins)
    with pytest.raises(OptionError, match="outfmt: got 'bam', expected one of pairwise, cigar, sam, paf"):
        create_pair_writer("bam", io.StringIO())


def test_sam_of_a_known_pair():
    run = make_run({"read": "GGACGTTACGT"}, {"ref": "CCCACGTACCGTTT"}, Scoring(dna_matrix(1, -1), 1, 1), "local")
    header, *lines = written("sam", run)[0].splitlines()
    assert header == "@HD\tVN:1.6\tSO:unsorted\tGO:query"
    assert lines[0] == "@SQ\tSN:ref\tLN:14"
    assert lines[1].startswith("@PG\tID:swsearch\tPN:swsearch\tVN:")
    assert "local alignment; DNA 1/-1, gap open 1, gap extend 1" in lines[1]
    assert lines[2] == "read\t0\tref\t4\t255\t2S9M\t*\t0\t0\tGGACGTTACGT\t*\tAS:i:5\tNM:i:2\tMD:Z:4A0C3"
    gapped = make_run({"read": "ACGTACGTACGTTT"}, {"ref": "ACGTACAAGTACGTTT"}, Scoring(dna_matrix(2, -3), 1, 1))
    fields = written("sam", gapped)[0].splitlines()[-1].split("\t")
    assert (fields[5], *fields[-3:]) == ("6M2D8M", "AS:i:25", "NM:i:2", "MD:Z:6^AA8")


NAMES = [
    "a", "q:1", "#x", "a_very_long_name_that_is_cut", "sp|P1|X", "12", "-", "1 2", "\N{NO-BREAK SPACE}", "",
    "\x1b[31m",
]  # fmt: skip


def assorted(count):
    """Yield runs of one pair that differ in everything that shapes blocks; the same ones every time."""
    generator = np.random.default_rng(3)
    for number in range(count):
        letters = (4, 20)[number % 2]
        matrix = (DNA_SCORING, Scoring())[number % 2].matrix
        scoring = Scoring(matrix, *((10, 1), (0, 1), (1, 0), (30, 0))[number // 7 % 4])
        m, n = (
            int(generator.integers(0, most)) for most in ((4, 130), (130, 4), (130, 130), (3, 3))[number // 3 % 4]
        )
        query = generator.integers(0, letters, m).astype(np.uint8)
        subject = generator.integers(0, letters, n).astype(np.uint8)
        if number % 5 and m:
            subject = np.concatenate([subject[:20], query[int(generator.integers(m)) :], subject[20:]])
        first, second = (NAMES[int(generator.integers(len(NAMES)))] for _ in range(2))
        yield make_run({first: query}, {second: subject}, scoring, MODES[number % 3])


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.exhaustive)])
def test_alignio_reads_every_block(count):
    lone, empty = 0, 0
    for run in assorted(count):
        text, (pair,) = written("pairwise", run)
        (alignment,) = AlignIO.parse(io.StringIO(text), "emboss")
        rows = [str(record.seq) for record in alignment]
        assert rows == [pair.query_row(), pair.subject_row()], text
        assert alignment.annotations["identity"] == pair.identities
        lone += any(len(row[at : at + 50].replace("-", "")) == 1 for row in rows for at in range(0, len(row), 50))
        empty += not pair.length
    assert min(lone, empty) >= count // 20


def test_every_format_counts_u_and_t_as_identical():
    query, subject = "GGAUUCUUGNNUA", "GGATTCAGTTGNNTACC"
    for outfmt in PAIR_FORMATS:
        texts = [
            written(outfmt, make_run({"q": read}, {"s": subject}, DNA_SCORING, "semiglobal"))[0]
            for read in (query, query.replace("U", "T"))
        ]
        # letters are shown as they were given, everything else is the same
        assert texts[0].replace("U", "T") == texts[1].replace("U", "T")
