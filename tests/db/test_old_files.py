"""Database files of every format that was ever written give back the FASTA that they were built from."""

from __future__ import annotations

import lzma
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from support import command_line
from support.db_helpers import all_of, naive_fasta
from support.samples import sample
from support.taxa import dump
from swsearch.db import Database, append_database, build_database, convert_database, verify_database
from swsearch.errors import DatabaseError, SwsearchWarning

FILES = Path(__file__).parent / "old_files"

OLD_FILES: dict[str, dict[str, Any]] = {
    "format1.h5": {},
    "format1_appended.h5": {},
    "format2_lower.h5": {"mask": "lower"},
    "format2_tantan.h5": {"mask": "tantan"},
    "format3_taxonomy.h5": {"taxids": "header", "taxonomy": "taxdump"},
    "format3_dna.h5": {"translate": True},
    "volumes.json": {"volume_size": 1},
}
"""How a new build makes the same."""

PRESENT = {"mask": "tantan", "taxids": "header", "taxonomy": "taxdump"}
"""How format4.h5 was built, and appended to once. The format is not released: a change of it renews the file."""

NODES = [(1, 1, "no rank"), (2759, 1, "superkingdom"), (9606, 2759, "species"), (10090, 2759, "species")]
NAMES = [
    (1, "root", "scientific name"),
    (2759, "Eukaryota", "scientific name"),
    (9606, "Homo sapiens", "scientific name"),
    (9606, "human", "genbank common name"),
    (10090, "Mus musculus", "scientific name"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Unpack all files into the current folder, with the taxonomy that they were built with."""
    for path in FILES.iterdir():
        if path.suffix == ".xz":
            (tmp_path / path.stem).write_bytes(lzma.decompress(path.read_bytes()))
        else:
            shutil.copy(path, tmp_path)
    (tmp_path / "taxdump").mkdir()
    (tmp_path / "taxdump" / "nodes.dmp").write_text(dump([(*row, "XX", 0) for row in NODES]))
    (tmp_path / "taxdump" / "names.dmp").write_text(dump([(taxid, name, "", kind) for taxid, name, kind in NAMES]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def inputs(name: str) -> list[str]:
    """Return the FASTA files that a database holds."""
    more = ["more.fasta"] if "appended" in name else []
    return ["dna.fasta" if "dna" in name else "protein.fasta", *more]


def built_anew(name: str, options: dict[str, Any]) -> str:
    """Build what a database holds once more; return the name."""
    with pytest.warns(SwsearchWarning, match="no taxid") if "taxids" in options else nullcontext():
        build_database(inputs(name), f"anew_{name}", **options)
    return f"anew_{name}"


@pytest.mark.parametrize("name", OLD_FILES)
def test_a_converted_file_is_what_a_new_build_is(folder: Path, name: str) -> None:
    before = (folder / name).read_bytes()
    new = f"new{Path(name).suffix}"
    words = rf"^{name}: got format [123], expected format 4; write .* convert {name}"
    for call in (Database.open, verify_database):
        with pytest.raises(DatabaseError, match=words):
            call(name)
    convert_database(name, new)
    anew, found = built_anew(name, OLD_FILES[name]), all_of(new)
    assert verify_database(new)["subjects"] == len(found["records"])
    assert found == all_of(anew)
    assert found["records"] == [record for each in inputs(name) for record in naive_fasta(Path(each).read_bytes())]
    assert (folder / name).read_bytes() == before
    with pytest.raises(DatabaseError, match=rf"{new}: is of format 4, expected an earlier one; use it as it is"):
        convert_database(new, "other.h5")


def test_the_present_format(folder: Path) -> None:
    found, anew = all_of("format4.h5"), built_anew("format4.h5", PRESENT)
    with pytest.warns(SwsearchWarning, match="none were given for 1 new records"):
        append_database(anew, "more.fasta")
    assert found == all_of(anew)
    assert found["records"] == naive_fasta(Path("protein.fasta").read_bytes() + Path("more.fasta").read_bytes())
    assert verify_database("format4.h5")["segments"] == 2


@pytest.mark.parametrize("step", sample([53, 4999], lambda step: step > 53))
@pytest.mark.parametrize("name", [name for name in OLD_FILES if name != "volumes.json"])
def test_a_damaged_byte_is_refused(folder: Path, name: str, step: int) -> None:
    """Wherever it is; a byte less is, too."""
    raw = (folder / name).read_bytes()
    for at in range(0, len(raw), step):
        (folder / name).write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        with pytest.raises(DatabaseError, match=name) as caught:
            convert_database(name, "new.h5")
        assert caught.value.exit_code == 2 and not Path("new.h5").exists()
    (folder / name).write_bytes(raw[:-1])
    with pytest.raises(DatabaseError, match=rf"{name}: damaged: truncated"):
        convert_database(name, "new.h5")


def test_another_volume_is_refused(folder: Path) -> None:
    shutil.copy("volumes.001.h5", "volumes.002.h5")
    before = sorted(folder.iterdir())
    with pytest.raises(DatabaseError, match=r"volumes\.002\.h5: is not the volume that .* names \(SHA-256"):
        convert_database("volumes.json", "new.json")
    assert sorted(folder.iterdir()) == before


def test_the_old_volumes_stay(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.glob("volumes.*")}
    convert_database("volumes.json", "volumes.h5")
    with Database.open("volumes.h5") as database:
        assert [Path(each.path).name for each in database.volumes] == [f"volumes.00{k}.h5" for k in range(4, 8)]
    assert before == {path: path.read_bytes() for path in before}


def test_the_command(folder: Path) -> None:
    done = command_line.run("db", "convert", "format1_appended.h5", "new.h5")
    assert (done.returncode, done.stdout) == (0, "") and "new.h5: 5 subjects, 175 residues" in done.stderr
    assert command_line.run("db", "fetch", "new.h5", "more").stdout == ">more appended later\nMKVWDERT\n"
    command_line.fails(command_line.run("search", "protein.fasta", "format1.h5"), 2, "db convert format1.h5 NEW.h5")
    command_line.fails(command_line.run("db", "info", "volumes.json"), 2, "db convert volumes.json NEW.json")
    command_line.fails(command_line.run("db", "convert", "protein.fasta", "x.h5"), 2, "is not a swsearch database")
