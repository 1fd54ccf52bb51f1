"""What is read of HDF5's metadata without its library is what the library wrote."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from support.samples import sample
from swsearch.db import Database, build_database, verify_database
from swsearch.db.contents import read_contents
from swsearch.db.format import LIBVER, USER_BLOCK
from swsearch.db.hdf5_structure import Structure
from swsearch.db.layout import FileSink, Layout
from swsearch.db.records import record_batches
from swsearch.db.source import FileSource
from swsearch.db.spool import Spool
from swsearch.db.writing import (
    create_segment,
    root_attributes,
    seal,
    segment_attributes,
    total_attributes,
    write_attributes,
)


def of_many_segments(path: Path, n: int) -> None:
    """Make a database of ``n`` segments of two subjects, as appending makes it."""
    with Spool(None) as spool:
        spool.add(record_batches([("a x", "MKV"), ("b y", "mLLL")]))
        spool.sources.append({"path": "x", "sha256": None, "bytes": 0, "records": 2, "residues": 7})
        layout = Layout(spool, 1 << 40)
        attributes = [segment_attributes(layout.counts)] * n
        with h5py.File(path, "w", libver=LIBVER, userblock_size=USER_BLOCK) as file:
            write_attributes(file, root_attributes("none") | total_attributes(attributes))
            segments = file.create_group("segments")
            places = [create_segment(segments, layout.shapes(), each) for each in attributes]
        with path.open("rb+", buffering=0) as raw:
            for each in places:
                layout.write(FileSink(raw.fileno(), each))
    seal(path, 1)


@pytest.mark.parametrize("n", sample([1, 9, 47, 300], lambda n: n < 10))
def test_as_the_library_says(tmp_path: Path, n: int) -> None:
    path = tmp_path / "many.h5"
    of_many_segments(path, n)
    source = FileSource(str(path))
    contents = read_contents(source)
    assert len(contents.segments) == n
    with h5py.File(path) as file:
        for number in {0, n // 2, n - 1}:
            segment, group = contents.segments[number], file[f"segments/{number}"]
            assert segment.name == group.name
            assert {name: str(value) for name, value in segment.attributes.items()} == {
                name: value.decode() if isinstance(value, bytes) else str(value)
                for name, value in group.attrs.items()
            }
            for found, written in ((segment.datasets, group), (segment.checksums, group["checksums"])):
                assert {*found} == {name for name, each in written.items() if isinstance(each, h5py.Dataset)}
                for name, dataset in found.items():
                    assert (dataset.shape, np.dtype(dataset.dtype)) == (written[name].shape, written[name].dtype)
                    assert dataset.n_bytes == written[name].nbytes
                    assert not dataset.n_bytes or dataset.offset == written[name].id.get_offset()
    source.close()
    with Database.open(path) as database:
        assert (database.n_subjects, database.info()["n_segments"]) == (2 * n, n)
        assert {database.sequence(place) for place in range(1, 2 * n, 2)} == {"mLLL"}
    assert verify_database(path)["segments"] == n


# 8 links fit a header, 45 a tree of one node, some 1,800 one of two levels
@pytest.mark.parametrize("n", [0, 8, 9, 45, 46, 700, 3000])
def test_links(tmp_path: Path, n: int) -> None:
    path = tmp_path / "links.h5"
    with h5py.File(path, "w", libver=LIBVER, userblock_size=USER_BLOCK) as file:
        group = file.create_group("g")
        target = file.create_group("target")
        for number in range(n):
            group[str(number)] = target
        for number in range(0, n, 7):
            del group[str(number)]
        expected = {*group}
        address = h5py.h5o.get_info(target.id).addr
    source = FileSource(str(path))
    structure = Structure(source)
    links = structure.group(structure.root(), "g", 3000).links
    assert {*links} == expected and {*links.values()} <= {address, address - USER_BLOCK}
    structure.check_apart()
    source.close()


@pytest.mark.parametrize("times", [1, 30])
def test_attributes_that_were_written_again(tmp_path: Path, times: int) -> None:
    """The heap then has holes, and the order of its objects is not that of the tree."""
    (tmp_path / "in.fasta").write_text(">a\nMKV\n")
    build_database(tmp_path / "in.fasta", tmp_path / "out.h5")
    for number in range(times):
        with h5py.File(tmp_path / "out.h5", "r+") as file:
            for name in ("software", "created"):
                del file.attrs[name]
                file.attrs[name] = np.bytes_(f"{name} {number}" * (number % 5 + 1))
            file.attrs["an array"], file.attrs["a text"] = np.arange(number + 1), "of variable length"
            file.attrs["a number"] = 2.5
    seal(tmp_path / "out.h5", 1)
    with Database.open(tmp_path / "out.h5") as database:
        assert database.info()["created"] == f"created {times - 1}" * ((times - 1) % 5 + 1)
    verify_database(tmp_path / "out.h5")
