"""The documentation says what is: its blocks run and print what it shows, and its tables are those of the code."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import zlib
from collections import Counter

import h5py
import numpy as np
import pytest
from conftest import ROOT

import swsearch
from support.docs_blocks import DOCS, LANGUAGES, PAGES, Runner, blocks, matches, renewed
from support.results_numbers import check_sections
from support.samples import sample
from swsearch import errors
from swsearch.cli import console  # noqa: F401  # console has errors of its own
from swsearch.db import append_database
from swsearch.report.pairs import PAIR_FORMATS

sys.path.insert(0, str(DOCS / "extensions"))
from generated import PARTS, PLACE, UndocumentedError, check_commands, commands, first_line


def page(name):
    return (DOCS / name).read_text(encoding="utf-8")


QUICK_GUIDES = {"howto/align-pairs.md", "howto/coming-from-blastp.md", "howto/search-a-proteome.md"}
"""Guides whose commands a quick run tries, beside all pages that are no guides."""


def run_blocks(name, folder, programs=(), renew=False):
    """Run a page's blocks, those that need programs where these are given; compare their output, or renew it."""
    runner, text, moved = Runner(folder), page(name), 0
    for block in blocks(text):
        assert block.language in LANGUAGES, f"{name}:{block.line}"
        if not block.is_run:
            assert not block.note or len(block.note) > len("not-run: "), f"{name}:{block.line}: say why"
            continue
        if not set(block.needs) <= set(programs):
            continue
        printed = runner.run(block)
        if block.output is not None and not matches(block.output, printed):
            assert renew, f"{name}:{block.line} printed\n{printed}\npytest tests/docs --renew-golden keeps it so"
            start, output = block.output_at + moved, renewed(block.output, printed)
            text = text[:start] + output + text[start + len(block.output) :]
            moved += len(output) - len(block.output)
    if renew:
        (DOCS / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", sample(PAGES, lambda name: not name.startswith("howto/") or name in QUICK_GUIDES))
def test_the_blocks_of_a_page_run_and_print_what_it_shows(name, tmp_path, request):
    run_blocks(name, tmp_path, renew=request.config.getoption("--renew-golden"))


PEERS = {name: {program for block in blocks(page(name)) for program in block.needs} for name in PAGES}
"""The programs that pages compare with."""


@pytest.mark.peer
@pytest.mark.exhaustive  # tests/report/test_blastp.py has some of it in a quick run
@pytest.mark.parametrize("name", [name for name, programs in PEERS.items() if programs])
def test_what_a_page_says_of_other_programs_is_so(name, tmp_path):
    missing = [program for program in sorted(PEERS[name]) if shutil.which(program) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    run_blocks(name, tmp_path, PEERS[name])


def help_of(name):
    """Return what --help of a command prints, as tests/test_golden.py holds it to."""
    return (ROOT / "tests" / "golden" / "help" / f"{name}.txt").read_text(encoding="utf-8")


def test_what_is_not_run_has_options_that_exist():
    names = [path.stem for path in (ROOT / "tests" / "golden" / "help").glob("*.txt")]
    known = {option for name in names for option in re.findall(r"--[a-z-]+", help_of(name))}
    for name in PAGES:
        for block in blocks(page(name)):
            if block.language == "sh" and not block.is_run:
                for option in options_of_swsearch(block.text):
                    assert option in known, f"{name}:{block.line}: {option}"


def options_of_swsearch(script):
    """Return the long options of a script's commands; pip and others have options too."""
    parts = re.split(r"&&|[|;\n]", re.sub(r"#.*|\\\n", " ", script))
    return [
        option for part in parts if part.split()[:1] == ["swsearch"] for option in re.findall(r" (--[a-z-]+)", part)
    ]


def test_no_line_is_taken_for_a_comment():
    # MyST drops lines that begin with a per cent sign, such as a number's unit after a line break
    for name in PAGES:
        assert not re.search(r"^%", page(name), re.MULTILINE), name


def test_every_measured_number_stands_in_the_results_that_its_section_links_to():
    checked = {name: check_sections(page(name), name) for name in PAGES}
    assert {name for name, count in checked.items() if count > 8} >= {
        "explanation/comparison.md",
        "explanation/kernels.md",
        "explanation/speed.md",
        "explanation/statistics.md",
    }


def test_what_is_undocumented_is_an_error():
    assert "## `swsearch search`" in commands()
    described = "## `swsearch x`\n\nDoes it.\n\n**Usage**:\n\n**Options**:\n\n* `--deep`: Deeper.  [default: 1]\n"
    check_commands(described)
    with pytest.raises(UndocumentedError, match="swsearch x --deep"):
        check_commands(described.replace("Deeper.", ""))
    with pytest.raises(UndocumentedError, match="swsearch x: expected"):
        check_commands(described.replace("Does it.\n\n", ""))
    with pytest.raises(UndocumentedError, match="has no docstring"):
        first_line(lambda: None)


def table_after(text, heading):
    """Return the rows of the first table after a heading, without backquotes."""
    table = re.search(r"(?:^\|.*\n)+", text.split(heading, 1)[1], re.MULTILINE)[0]
    return [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_the_page_of_the_database_file_says_what_is_in_one(tmp_path):
    path = tmp_path / "two.h5"
    swsearch.Database.build([ROOT / "examples" / "data" / "queries.fasta"], path).close()
    append_database(path, [ROOT / "examples" / "data" / "swissprot_sample.fasta.gz"], on_duplicate="keep")
    text = page("reference/database-file.md")
    with h5py.File(path) as file:
        attributes = table_after(text, "## Attributes of the root")
        assert {name for name, _ in attributes} == set(file.attrs)
        for name, what in attributes:
            value = file.attrs[name]
            if number := re.match(r"[\d,]+\b", what):
                assert int(number[0].replace(",", "")) == value, name
        arrays = table_after(text, "## Segments")
        for segment in file["segments"].values():
            sizes = {name: int(value) for name, value in segment.attrs.items() if not isinstance(value, bytes)}
            sizes |= {"n_columns": segment["block_offsets"][-1], "n_blocks": len(segment["block_offsets"]) - 1}
            assert {f"`{name}`" for name in segment.attrs} <= set(
                re.findall(r"`\w+`", text.split("attributes are")[1])
            )
            assert {name for name, *_ in arrays} | {"checksums"} == set(segment)
            sums = []
            for name, kind, shape, _ in sorted(arrays):
                data = segment[name]
                assert data.dtype == np.dtype(kind).newbyteorder("<"), name
                known = {"bytes": len(data), "n_intervals": len(data)} | sizes
                assert data.shape == tuple(eval(part, known) for part in shape[1:-1].split(",")), name
                whole, step = data[()].tobytes(), int(file.attrs["piece_bytes"])
                sums += [zlib.crc32(whole[at : at + step]) for at in range(0, len(whole), step)]
            assert segment["checksums"][()].tolist() == sums
    head = path.read_bytes()[:512].rstrip(b"\0").decode().splitlines()
    lines = [row[0].split()[0] for row in table_after(text, "## User block")]
    assert [line.split()[0] for line in head] == lines[:-1] and lines[-1] == "changes"
    assert head[2] == f"bytes {path.stat().st_size}"
    names = set()
    place, number = head[3].split()[1:], 2
    while place is not None:
        number -= 1
        piece, place = check_piece(path, place, number)
        names |= {*piece, *piece["segments"][0]}
    assert number == 0
    assert names == {name for name, _ in table_after(text, "## Contents")} | {name for name, _ in attributes}


def check_piece(path, place, number):
    """Compare a piece of the contents with what HDF5 says; return it, and the place of the one before."""
    at, length, sha256 = place
    raw = path.read_bytes()[int(at) : int(at) + int(length)]
    assert hashlib.sha256(raw).hexdigest() == sha256
    piece = json.loads(raw)

    def attributes(group):
        values = {name: value.decode() if isinstance(value, bytes) else value for name, value in group.attrs.items()}
        return {name: value if isinstance(value, str) else int(value) for name, value in values.items()}

    def place_of(dataset):
        return dataset.id.get_offset() if dataset.size else 0

    with h5py.File(path) as file:
        dataset, group = file[f"contents/{number}"], file[f"segments/{number}"]
        assert (place_of(dataset), dataset[()].tobytes()) == (int(at), raw)
        assert {name: value for name, value in piece.items() if name not in ("before", "segments")} == attributes(
            file
        )
        (segment,) = piece["segments"]
        assert segment["attributes"] == attributes(group)
        assert segment["checksums"] == place_of(group["checksums"])
        sums, first = group["checksums"][()], 0
        for name, (shape, begin, digest) in sorted(segment["arrays"].items()):
            assert (shape, begin) == (list(group[name].shape), place_of(group[name]))
            last = first + -(-group[name].nbytes // piece["piece_bytes"])
            assert hashlib.sha256(sums[first:last].tobytes()).hexdigest() == digest
            first = last
    return piece, piece.get("before")


def test_every_format_of_align_is_described():
    rows = table_after(page("reference/output.md"), "## Formats of `swsearch align`")
    assert [name for name, _ in rows] == list(PAIR_FORMATS)


def test_every_exit_code_is_described():
    text = page("reference/exit-codes.md")
    codes = {int(code) for code, _ in table_after(text, "# Exit codes")}
    raised = {kind.exit_code for kind in subclasses(errors.SwsearchError)}
    assert codes >= raised


def subclasses(kind):
    return {kind}.union(*(subclasses(each) for each in kind.__subclasses__()))


def test_every_part_has_its_place():
    used = {place for name in PAGES for place in PLACE.findall(page(name))}
    assert used == set(PARTS)


def blast_options(program):
    """Return the rows of the table of a program's options."""
    return table_after(page("reference/blast-options.md"), f"## Options of {program}\n")


@pytest.mark.peer
@pytest.mark.parametrize("program", ["blastp", "makeblastdb", "blastdbcmd"])
def test_every_option_of_a_program_of_blast_is_in_its_table(program):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    told = subprocess.run([program, "-help"], capture_output=True, text=True, check=True).stdout
    options = re.findall(r"^ (-\w+)", told, re.MULTILINE)
    assert len(options) > 10
    assert Counter(re.findall(r"-\w+", " ".join(row[0] for row in blast_options(program)))) == Counter(options)


@pytest.mark.parametrize(
    ("program", "here"),
    [
        ("blastp", ("search",)),
        ("psiblast and tblastn", ("search", "db-build")),
        ("makeblastdb", ("db-build",)),
        ("blastdbcmd", ("db-fetch", "db-info")),
    ],
)
def test_every_option_that_stands_for_one_of_blast_exists(program, here):
    options = {option for name in ("swsearch", *here) for option in re.findall(r"--[a-z-]+", help_of(name))}
    named = set(re.findall(r"--[a-z-]+", " ".join(cell for row in blast_options(program) for cell in row[1:])))
    assert named <= options
    for row in blast_options(program):
        assert re.search(r"--|no effect|not there|argument|db info", row[1]), row
