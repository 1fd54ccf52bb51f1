"""A folder of alignments: names of files, what is in them, and what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from Bio import AlignIO

from swsearch.alphabet import PROTEIN
from swsearch.errors import OptionError, OutputError
from swsearch.profiles.readers import read_alignments
from swsearch.profiles.row_filter import RowFilter
from swsearch.report.alignments import ALIGNMENT_FORMATS
from swsearch.report.profile_output import MAX_FILE_NAME, AlignmentFolder, FolderCounts, file_names
from swsearch.results import alignment_of
from tests.support.query_alignments import a3m_rows, alignment_from, column_rows
from tests.support.report_cases import QUERY, SUBJECT, make_result, report


def test_names_of_files_are_safe_and_unique() -> None:
    given = ["sp|P1|X", "sp|P1|x", "a/b", "..", ".", "", "", "-o", "é b", "x" * 300, "x" * 301, "a_b", "A/B", "con:1"]
    names = file_names(given, ".a3m")
    assert names[:9] == [
        "sp_P1_X.a3m", "sp_P1_x_2.a3m", "a_b.a3m", "_..a3m", "_.a3m", "query.a3m", "query_2.a3m", "_o.a3m", "__b.a3m",
    ]  # fmt: skip
    assert names[11:] == ["a_b_2.a3m", "A_B_3.a3m", "con_1.a3m"]
    assert len({name.lower() for name in names}) == len(names)
    assert all(len(name) <= MAX_FILE_NAME + 10 and "/" not in name for name in names)
    assert file_names(["q_2", "q", "q"], "") == ["q_2", "q", "q_3"]
    assert file_names(["q"] * 3, "") == ["q", "q_2", "q_3"]


RESULT = make_result(subjects=[("s1", "", SUBJECT), ("s2", "", QUERY), ("s3", "", QUERY[:40])])
FOUND = alignment_of(RESULT)


@pytest.mark.parametrize("outfmt", ALIGNMENT_FORMATS)
def test_each_query_has_a_file(outfmt: str, tmp_path: Path) -> None:
    nothing = make_result(("b", "", QUERY), [])
    folder = AlignmentFolder(tmp_path / "new" / "folder", ["a", "b", "none"], outfmt)
    for alignment in (RowFilter().apply(FOUND), alignment_of(nothing), None):
        folder.write(alignment)
    extension, _ = ALIGNMENT_FORMATS[outfmt]
    assert sorted(path.name for path in folder.folder.iterdir()) == [f"a{extension}", f"b{extension}"]
    assert folder.counts == FolderCounts(2, 2, 1), "s2 is the query, and is left out"
    kind = "stockholm" if outfmt == "stockholm" else "fasta"
    if outfmt != "a3m":
        read = AlignIO.read(folder.folder / f"b{extension}", kind)
        assert len(read) == 1 and str(read[0].seq) == QUERY
    assert (folder.folder / f"b{extension}").read_text() == report(outfmt, nothing)


@pytest.mark.parametrize("outfmt", ALIGNMENT_FORMATS)
def test_what_is_written_is_read_as_a_query(outfmt: str, tmp_path: Path) -> None:
    extension, texts = ALIGNMENT_FORMATS[outfmt]
    rows = "MKTAYIAK", "MkkKT--IAK", "cM-TAYIAKww", "aa-K----WW", "MKppTAY---"
    alignment = replace(alignment_from(*rows), starts=np.array([0, 4, 0, 1, 2]))
    alignment = replace(alignment, ends=alignment.starts + [sum(letter != "-" for letter in row) for row in rows])
    path = tmp_path / f"q{extension}"
    path.write_text("".join(texts(alignment, PROTEIN)))
    (read,) = read_alignments(path, outfmt)  # type: ignore[arg-type]
    if outfmt == "fasta-aligned":
        assert a3m_rows(read) == column_rows(alignment)
        return
    assert a3m_rows(read) == list(rows)
    assert list(read.identifiers) == list(alignment.identifiers)
    assert (read.starts.tolist(), read.ends.tolist()) == (alignment.starts.tolist(), alignment.ends.tolist())


def test_rows_are_filtered() -> None:
    assert len(RowFilter(min_coverage=80).apply(FOUND)) == 2


def test_files_are_replaced_and_what_a_killed_run_left_stays_whole(tmp_path: Path) -> None:
    (tmp_path / "a.a3m").write_text("old")
    (tmp_path / "other.a3m").write_text("other")
    AlignmentFolder(tmp_path, ["a"], "a3m").write(FOUND)
    assert (tmp_path / "a.a3m").read_text().startswith(f">q1 the query\n{QUERY}\n")
    assert (tmp_path / "other.a3m").read_text() == "other"
    assert len(list(tmp_path.iterdir())) == 2


def test_what_fails_on_the_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Iterator[str]:
        yield ">q1\nMKT"
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(ALIGNMENT_FORMATS, "a3m", (".a3m", broken))
    folder = AlignmentFolder(tmp_path, ["a"], "a3m")
    with pytest.raises(OutputError, match=r"a\.a3m: cannot be written: No space left on device; nothing was left"):
        folder.write(FOUND)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.a3m").mkdir()
    folder = AlignmentFolder(tmp_path, ["a"], "a3m")
    with pytest.raises(OutputError, match=r"a\.a3m: is a directory"):
        folder.write(FOUND)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file: is not a folder, expected a folder for alignments; choose another"):
        AlignmentFolder(tmp_path / "file", [], "a3m")
    with pytest.raises(OutputError, match="cannot be created: Not a directory"):
        AlignmentFolder(tmp_path / "file" / "below", [], "a3m")
    with pytest.raises(OptionError, match="outfmt: got 'a2m', expected one of a3m, stockholm, fasta-aligned"):
        AlignmentFolder(tmp_path, [], "a2m")
