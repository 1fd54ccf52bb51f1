"""Files of other programs as queries, what is wrong with others, and which format a file has."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest

import swsearch
from swsearch.alphabet import PROTEIN
from swsearch.errors import InputError, OptionError, SwsearchError
from swsearch.profiles import calibration, formats, hmm, msa_readers, pssm, readers
from swsearch.profiles.profile import Profile
from swsearch.profiles.text_lines import TextFile
from swsearch.scoring import Scoring
from tests.support.samples import sample

DATA = Path(__file__).parent / "data"
SCORING = Scoring()
QUERY = "GKELVLALYDYQEKSPDEVTMKKGDILTLLNSTNKDWWKVEVNDRQGFVPAAYVKKLD"
FILES = {
    "sh3.pssm": "pssm", "sh3.asn.gz": "asn", "sh3.hmm.gz": "hmm", "sh3.hhm": "hhm", "sh3.sto": "stockholm",
    "sh3.aln": "clustal",
}  # fmt: skip
A3M = b"#6\t1\n>q first\nMKVLAA\n>Consensus\nxxxxxx\n>ss_pred x\nHHHHHH\n>s/11-17 second\nMK-LwwAA\n>t\n.--VL-yA\n"


def text_of(name: str) -> str:
    data = (DATA / name).read_bytes()
    return (gzip.decompress(data) if name.endswith(".gz") else data).decode("ascii")


def read(data: str | bytes, format_: str = "auto") -> list[Profile]:
    source = reading_handle(data)
    return readers.profiles_of(source, formats.detect_format(source, format_), SCORING)  # type: ignore[arg-type]


def reading_handle(data: str | bytes):  # type: ignore[no-untyped-def]
    from swsearch.db.python_records import OpenFastaFile

    return OpenFastaFile(io.BytesIO(data.encode() if isinstance(data, str) else data), "f")


@pytest.mark.parametrize(("name", "expected"), FILES.items())
def test_formats_are_recognized_by_content_and_read(name: str, expected: str) -> None:
    source = reading_handle(text_of(name))
    assert formats.detect_format(source) == expected
    profile = Profile.read(DATA / name)
    assert len(profile) == (58 if name != "sh3.hmm.gz" else len(profile))
    if expected not in ("hmm", "hhm"):
        assert PROTEIN.decode(profile.codes) == QUERY
    assert profile.scores.max() > 8
    assert profile.source
    assert profile.lambda_ == calibration.lambda_of(SCORING.matrix)
    # however it was made, tryptophans of the family score high there, and its own letters on the whole
    assert profile.scores[:, :20].mean() < 0 < profile.scores[np.arange(len(profile)), profile.codes].mean()


def test_the_two_forms_of_psiblasts_matrix_are_equal() -> None:
    ascii_, asn = Profile.read(DATA / "sh3.pssm"), Profile.read(DATA / "sh3.asn.gz")
    assert np.array_equal(ascii_.scores, asn.scores)
    assert np.array_equal(ascii_.codes, asn.codes)
    assert (asn.gap_open, asn.gap_extend, ascii_.gap_open) == (11, 1, None)
    assert asn.identifier == "d3m0ra_"
    row = dict(zip(PROTEIN.letters, ascii_.scores[0].tolist(), strict=True))
    assert (row["A"], row["G"], row["V"]) == (0, 6, -4)  # the file's own numbers
    assert (row["X"], row["O"], row["*"], row["U"], row["B"]) == (-1, -1, -4, row["C"], -1)


def test_frequencies_make_scores_where_there_are_no_final_ones() -> None:
    whole = text_of("sh3.asn.gz")
    begin, end = whole.index("    finalData {"), whole.index("  params {")
    cut = whole[:begin].rstrip().removesuffix(",") + "\n  },\n" + whole[end:]
    made, final = read(cut)[0], Profile.read(DATA / "sh3.asn.gz")
    assert np.abs(made.scores[:, :20].astype(int) - final.scores[:, :20]).max() <= 1
    observed = cut.replace("freqRatios", "other")
    assert np.corrcoef(read(observed)[0].scores[:, :20].ravel(), final.scores[:, :20].ravel())[0, 1] > 0.8


def test_scaled_scores_are_divided() -> None:
    whole = text_of("sh3.asn.gz")
    begin = whole.index("scores {", whole.index("finalData"))
    end = whole.index("}", begin)
    numbers = [int(word) for word in whole[begin + 8 : end].replace(",", " ").split()]
    scaled = ", ".join(str(n * 100 if n > -32768 else n) for n in numbers)
    text = f"{whole[:begin]}scores {{ {scaled} }}, scalingFactor 100{whole[end + 1 :]}"
    assert np.array_equal(read(text)[0].scores, Profile.read(DATA / "sh3.asn.gz").scores)


def test_scores_come_in_the_units_of_the_searchs_matrix() -> None:
    wide = Profile.read(DATA / "sh3.hmm.gz", scoring=Scoring("PFASUM60"))
    usual = Profile.read(DATA / "sh3.hmm.gz")
    ratio = calibration.lambda_of(SCORING.matrix) / calibration.lambda_of(Scoring("PFASUM60").matrix)
    assert np.abs(wide.scores[:, :20] - ratio * usual.scores[:, :20]).max() < 1.3
    scaled = Profile.read(DATA / "sh3.asn.gz", scoring=Scoring("PFASUM60"))
    assert "scaled by 1.4" in scaled.source
    assert scaled.gap_open is None


def test_hmms_give_gap_costs_by_position_where_they_are_asked_for() -> None:
    text = TextFile.from_bytes("f", text_of("sh3.hmm.gz").encode())
    assert hmm.read_hmm(text, SCORING)[0].gaps is None
    found = hmm.read_hmm(text, SCORING, position_gaps=True)[0]
    assert found.gaps is not None
    assert len(found.gaps) == len(found)
    assert 5 < np.median(found.gaps.deletion_open) < 25
    assert "gap costs by position" in found.source
    assert hmm.HMMER_BACKGROUND.sum() == pytest.approx(1, abs=1e-6)


def test_several_in_a_file_are_several_queries() -> None:
    for name in ("sh3.pssm", "sh3.asn.gz", "sh3.hmm.gz", "sh3.hhm", "sh3.sto"):
        assert len(read(2 * text_of(name))) == 2
    assert [one.identifier for one in read(A3M + b"#\n>r\nMKV\n>s\nM-V\n")] == ["q", "r"]


def test_a3m_has_its_columns_and_insertions() -> None:
    (found,) = msa_readers.read_a3m(TextFile.from_bytes("f", A3M))
    assert list(found.identifiers) == ["q", "s", "t"]
    assert list(found.descriptions) == ["first", "second", ""]
    assert list(msa_readers.rows_of(found)) == ["MKVLAA", "MK-LwwAA", "--VL-yA"]
    assert (found.starts.tolist(), found.ends.tolist()) == ([0, 10, 0], [6, 17, 4])


def test_the_querys_gaps_become_insertions_and_its_insertions_columns() -> None:
    (found,) = msa_readers.read_aligned_fasta(TextFile.from_bytes("f", b">q\n-MK--V-\n>s\nAMKwwVA\n>t\n..k.A--\n"))
    assert list(msa_readers.rows_of(found)) == ["MKV", "aMKwwVa", "-Ka-"]
    (found,) = msa_readers.read_a3m(TextFile.from_bytes("f", b">q\nMKwV\n>s\nM-yyV\n>t\n-KV\n"))
    assert list(msa_readers.rows_of(found)) == ["MKWV", "M-yy-V", "-K-V"]


def test_windows_line_ends_and_blanks_are_read() -> None:
    (found,) = msa_readers.read_a3m(TextFile.from_bytes("f", b"\xef\xbb\xbf>q\tx y\r\nMK V\r\n\r\nL\r\n>s\r\nM--L"))
    assert list(msa_readers.rows_of(found)) == ["MKVL", "M--L"]
    assert found.descriptions[0] == "x y"


def test_fasta_stays_fasta_and_gaps_are_to_be_named(tmp_path: Path) -> None:
    path = tmp_path / "q.fa"
    path.write_text(">a\nMKVLAAGIVG\n>b\nMKV-AAGIVG\n")
    subjects = [("s", "MKVLAAGIVGWW")]
    with pytest.raises(InputError, match=r"record 'b' line 4: '-' is a gap .* --query-format fasta-aligned or a3m"):
        swsearch.search(path, subjects)
    assert len(swsearch.inputs.read_queries(path, scoring=SCORING, query_format="fasta-aligned")) == 1
    path.write_text(">a\nMKVLAAGIVG\n>b\nMKVAAAGIVG\n")
    assert len(swsearch.inputs.read_queries(path, scoring=SCORING)) == 2
    named = tmp_path / "q.a3m"
    named.write_text(">a\nMKVLAAGIVG\n>b\nMKVaAAAGIVG\n")
    assert len(swsearch.inputs.read_queries(named, scoring=SCORING)) == 1


@pytest.mark.parametrize(
    ("format_", "data", "expected"),
    [
        ("a3m", b">q\nMKV\n>s\nMKVV\n", r"f: record 's' line 3: 4 columns, expected 3 as of q"),
        ("a3m", b">q\nMK7\n", r"record 'q' line 1: '7' is a digit"),
        ("a3m", b"MKV\n>q\nMKV\n", r"line 1: letters stand before the first name"),
        ("a3m", b"#3,4\t1,1\n>q\nMKVMKVL\n", r"line 1: an alignment of 2 chains"),
        ("a3m", b">q\n---\n>s\nMKV\n", r"record 'q' line 1: the first sequence has no residues"),
        ("a3m", b">ss_pred\nHHH\n", r"no sequences beside annotation"),
        ("a3m", b"", r"f: no sequences, expected an alignment in A3M"),
        ("a3m", b">\nMKV\n", r"line 1: a header without an identifier"),
        ("a3m", b">q\nMK\0V\n", r"line 2: a NUL byte"),
        ("fasta-aligned", b">q\nMKV\n>s\nMK\n", r"record 's' line 3: 2 columns, expected 3 as of q"),
        ("stockholm", b"# STOCKHOLM 1.0\nq MKV\n", r"line 2: the file ends here, expected '//'"),
        ("stockholm", b"# STOCKHOLM 1.0\n//\n", r"line 2: an alignment without sequences"),
        ("stockholm", b"# STOCKHOLM 1.0\nq\n//\n", r"line 2: expected a name and a sequence"),
        ("stockholm", b"q MKV\n//\n", r"line 1: expected '# STOCKHOLM 1.0'"),
        ("clustal", b"CLUSTAL\n\nq MKV\ns MKV\n\nq MKV\n", r"record 's' line 4: 1 lines of its sequence, expected 2"),
        ("clustal", b"CLUSTAL\n", r"f: no sequences"),
        ("pssm", b"x\n", r"line 1: expected 'Last position-specific"),
        ("asn", b"PssmWithParameters ::= { x 1 }", r"line 1: no pssm in it"),
        ("asn", b"PssmWithParameters ::= { pssm { numRows 28, numColumns 0 } }", r"28 rows and 0 columns"),
        ("asn", b"PssmWithParameters ::= " + b"{" * 50, r"more than 40 braces"),
        ("asn", b'A ::= { b "x', r"the file ends here, expected the end of a text in quotes"),
        ("hmm", b"HMMER2.0 [2.3]\n", r"line 1: a model of HMMER2, .* hmmconvert"),
        ("hmm", b"HMMER3/f\nALPH  DNA\n", r"line 2: a model of DNA, expected ALPH amino"),
        ("hmm", b"HMMER3/f\nLENG  x\n", r"line 2: 'x' is no length"),
        ("hhm", b"HHsearch 1.5\n//\n", r"line 2: the model ends before its states"),
        ("json", b'{"swsearch":"profile","version":2}', r"line 1: version 2 .* expected 1; a later swsearch"),
        ("json", b'{"swsearch":"hits"}', r"line 1: no profile of swsearch"),
        ("json", b"{", r"line 1: no JSON: the line is not complete"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(format_: str, data: bytes, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        read(data, format_)


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("sh3.pssm", "    2 K ", "    3 K ", "line 5: position 3, expected 2: a line is missing"),
        ("sh3.pssm", "    1 G     0 ", "    1 G   nan ", "line 4: 'nan' is no score"),
        ("sh3.pssm", "    1 G     0 ", "    1 G ", "line 4: 43 words"),
        ("sh3.pssm", "            A   R", "            A   A", "line 3: expected the letters of the columns"),
        ("sh3.asn.gz", "numColumns 58", "numColumns 57", "a query of 58 residues, expected 57"),
        ("sh3.asn.gz", "numRows 28", "numRows 27", "1624 numbers, expected 27 x 58"),
        ("sh3.asn.gz", "isProtein TRUE", "isProtein FALSE", "expected a matrix for proteins"),
        ("sh3.hmm.gz", "ALPH  amino", "ALPH  RNA", "a model of RNA"),
        ("sh3.hmm.gz", "      2   ", "      9   ", "expected state 2 of"),
        ("sh3.hhm", "K 2 ", "K 3 ", "expected a letter and 2, the number of the next state"),
        ("sh3.hhm", "LENG  58", "LENG  59", "58 states, expected 59 as LENG says"),
    ],
)  # fmt: skip
def test_damaged_files_are_told(name: str, old: str, new: str, expected: str) -> None:
    whole = text_of(name)
    assert old in whole
    with pytest.raises(InputError, match=expected):
        read(whole.replace(old, new, 1))


def cuts() -> list[tuple[str, int]]:
    """Places to cut each file at: the quick run takes some."""
    return [(name, part) for name in [*FILES, "json", "a3m"] for part in range(12)]


@pytest.mark.parametrize(("name", "part"), sample(cuts(), lambda case: case[1] in (0, 7)))
def test_every_beginning_of_a_file_is_refused_or_read(name: str, part: int) -> None:
    """A cut file gets a sentence that names it, or is read as a smaller one; nothing else comes out of a reader."""
    if name == "json":
        whole = swsearch.profiles.json_profile.to_json_line(Profile.read(DATA / "sh3.sto"))
    else:
        whole = A3M.decode() if name == "a3m" else text_of(name)
    format_ = FILES.get(name, name)
    generator = np.random.default_rng(part)
    for at in sorted({0, *generator.integers(len(whole), size=9).tolist()}):
        try:
            for profile in read(whole[:at], format_):
                assert len(profile) > 0
        except SwsearchError as error:
            assert str(error).startswith("f: "), at


@pytest.mark.parametrize("format_", [one for one in formats.QUERY_FORMATS if one not in ("auto", "fasta")])
def test_garbage_is_refused_in_every_format(format_: str) -> None:
    generator = np.random.default_rng(7)
    for data in (
        generator.bytes(3000),
        bytes(range(32, 127)) * 20,
        b"\n\n",
        b"\xff\xfe" * 50,
        b"(" * 9000,
        b"\n>" * 99,
    ):
        with pytest.raises(SwsearchError, match=r"^f: "):
            read(data, format_)


def test_other_forms_of_a_pssm_are_told() -> None:
    for data in (b"0\x80\x80", b'<?xml version="1.0"?>\n<PssmWithParameters>'):
        with pytest.raises(InputError, match="looks like a PSSM in"):
            read(data)
    with pytest.raises(OptionError, match="query_format: got 'fas', expected one of auto, fasta"):
        read(b">q", "fas")


def test_a_million_columns_are_read() -> None:
    rows = b">q\n" + b"MKVLAAGIVG" * 100_000 + b"\n>s\n" + b"MK-LAAGIVG" * 100_000
    (found,) = msa_readers.read_a3m(TextFile.from_bytes("f", rows))
    assert found.n_columns == 1_000_000


def test_one_profile_is_read_from_a_file_of_one(tmp_path: Path) -> None:
    path = tmp_path / "two.hhm"
    path.write_text(2 * text_of("sh3.hhm"))
    with pytest.raises(InputError, match="holds 2 profiles, expected one"):
        Profile.read(path)
    path.write_text(">a\nMKV\n")
    with pytest.raises(InputError, match="looks like FASTA"):
        Profile.read(path)
    with pytest.raises(InputError, match=r"holds profiles \(hhm\), expected an alignment"):
        Profile.from_alignment(DATA / "sh3.hhm")
    with pytest.raises(InputError, match="no such file"):
        Profile.read(tmp_path / "none.hmm")
    assert len(Profile.from_alignment(DATA / "sh3.aln")) == 58


def test_ncbis_ascii_is_written_as_it_is_read() -> None:
    profile = Profile.read(DATA / "sh3.asn.gz")
    again = read("\n".join(pssm.ascii_lines(profile)))[0]
    assert np.array_equal(again.scores[:, :20], profile.scores[:, :20])
    assert np.array_equal(again.codes, profile.codes)


def test_ncbis_ascii_has_psiblasts_columns() -> None:
    """But for percentages and what follows, which were not kept, each line is the one that psiblast wrote."""
    theirs = text_of("sh3.pssm").split("\n")[:61]
    ours = list(pssm.ascii_lines(Profile.read(DATA / "sh3.pssm")))[:61]
    assert ours[:3] == theirs[:3]
    assert [line[:90] for line in ours] == [line[:90] for line in theirs]
    assert [len(line) for line in ours] == [len(line) for line in theirs]


def test_stdin_and_compressed_files_are_read_like_fasta(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (DATA / "sh3.asn.gz").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    (query,) = swsearch.inputs.read_queries("-", scoring=SCORING)
    assert query.profile is not None
    assert np.array_equal(query.profile.scores, Profile.read(DATA / "sh3.asn.gz").scores)
    (tmp_path / "cut.gz").write_bytes(data[:5000])
    with pytest.raises(InputError, match="truncated gzip data"):
        swsearch.inputs.read_queries(tmp_path / "cut.gz", scoring=SCORING)
