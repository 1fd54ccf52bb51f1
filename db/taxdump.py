"""NCBI's taxonomy as it gives it out: nodes.dmp, names.dmp, merged.dmp and delnodes.dmp, in a folder or tar file."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, NoReturn

import numpy as np

from swsearch.blocks import IntArray
from swsearch.db.taxonomy import MOST_KNOWN, MOST_TAXID, TaxidArray, TaxonName, Taxonomy, packed_taxids
from swsearch.errors import InputError, shown

NAME_CLASSES = {
    b"scientific name": "scientific",
    b"genbank common name": "common",
    b"common name": "other",
    b"blast name": "blast",
}
"""Names of a taxon that are kept; the first other common name counts where GenBank has none."""

MOST_LINE = 1 << 16
"""Bytes of a line; NCBI's longest have about 1,000, in nodes.dmp's comments."""


class DumpFiles:
    """The files of a taxonomy: those of a folder, or the members of a tar file, packed or not.

    Parameters
    ----------
    path : path
        A folder, or a file such as ``taxdump.tar.gz``.

    Raises
    ------
    InputError
        If it is neither.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fsdecode(path)
        self._held = ExitStack()
        self._members: dict[str, tarfile.TarInfo] | None = None
        try:
            if Path(self.path).is_dir():
                return
            self._tar = self._held.enter_context(tarfile.open(self.path))  # noqa: SIM115
            self._members = {Path(each.name).name: each for each in self._tar if each.isfile()}
        except (OSError, ValueError, EOFError, tarfile.TarError) as error:
            self.close()
            reason = getattr(error, "strerror", None) or "is not a tar file"
            expected = "expected a folder with NCBI's nodes.dmp and names.dmp, or taxdump.tar.gz"
            raise InputError(f"taxonomy: {self.path}: {reason}; {expected}") from error

    def check(self) -> None:
        """Raise `InputError` if what every taxonomy has is missing, and close this."""
        with self:
            for name in ("nodes.dmp", "names.dmp"):
                file = self._opened(name)
                if file is None:
                    raise InputError(
                        f"taxonomy: {self.path}: {name} not found, expected NCBI's nodes.dmp and names.dmp"
                    )
                file.close()

    def lines(self, name: str, is_optional: bool = False) -> Iterator[tuple[int, list[bytes]]]:
        """Yield the number and the fields of each line of a file; none where an optional file is not there."""
        shown_name = f"{self.path}: {name}" if self._members is not None else str(Path(self.path) / name)
        try:
            file = self._opened(name)
            if file is None:
                if is_optional:
                    return
                raise InputError(f"taxonomy: {self.path}: {name} not found, expected NCBI's nodes.dmp and names.dmp")
            with file:
                number = 0
                while line := file.readline(MOST_LINE):
                    number += 1
                    if line.strip():
                        yield number, line.rstrip(b"\r\n").removesuffix(b"\t|").split(b"\t|\t")
        except (OSError, EOFError, tarfile.TarError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"taxonomy: {shown_name}: cannot be read: {reason}") from error

    def _opened(self, name: str) -> IO[bytes] | None:
        if self._members is not None:
            return self._tar.extractfile(self._members[name]) if name in self._members else None
        path = Path(self.path) / name
        return path.open("rb") if path.is_file() else None

    def wrong(self, name: str, line: int, problem: str) -> NoReturn:
        """Raise the error for a line."""
        raise InputError(f"taxonomy: {self.path}: {name}, line {line:,}: {problem}")

    def taxid(self, name: str, line: int, field: bytes) -> int:
        """Return the taxid that a field holds."""
        digits = field.strip()
        if not digits.isdigit() or not 1 <= int(digits[:20]) <= MOST_TAXID:
            got = shown(field[:40].decode("utf-8", "replace"))
            self.wrong(name, line, f"got {got}, expected a taxid, a number from 1 to {MOST_TAXID:,}")
        return int(digits)

    def close(self) -> None:
        """Close the tar file."""
        self._held.close()

    def __enter__(self) -> DumpFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True)
class _Tree:
    """All taxa: taxids, ascending; the place of the taxon above each; and each one's rank, a number in ``ranks``."""

    taxa: TaxidArray
    above: IntArray
    rank: IntArray
    ranks: list[str]


def read_taxonomy(path: str | os.PathLike[str], taxids: TaxidArray) -> Taxonomy:
    """Read of NCBI's taxonomy what a database needs.

    Parameters
    ----------
    path : path
        A folder with ``nodes.dmp`` and ``names.dmp``, and ``merged.dmp`` and ``delnodes.dmp`` if there are any; or a
        tar file that holds them. Memory: some 30 bytes for each taxon there is.
    taxids : ndarray, shape (n,), int32
        Those of the subjects.

    Returns
    -------
    Taxonomy

    Raises
    ------
    InputError
        If a file is missing, a line is none that NCBI writes, or taxa do not stand below one another.
    """
    with DumpFiles(path) as files:
        tree = _read_nodes(files)
        merged = _read_merged(files, tree)
        deleted = [files.taxid("delnodes.dmp", *each) for each in _first_fields(files, "delnodes.dmp")]
        new = np.array([merged.get(taxid, taxid) for taxid in np.unique(taxids).tolist()], dtype=np.int64)
        places = _with_all_above(tree, new)
        names = _read_names(files, tree, places)
        kept = tree.taxa[places]
        old = sorted(old for old, now in merged.items() if _is_in(kept, now))
        known = packed_taxids(
            np.array([*tree.taxa.tolist(), *merged], dtype=np.int64), np.array(deleted, dtype=np.int64)
        )
        if len(tree.taxa) + len(deleted) > MOST_KNOWN:
            known = b""
        return Taxonomy(
            kept, tree.taxa[tree.above[places]], names,
            np.array(old, dtype=np.int32), np.array([merged[each] for each in old], dtype=np.int32), known,
        )  # fmt: skip


def _is_in(values: TaxidArray, value: int) -> bool:
    place = int(np.searchsorted(values, value))
    return place < len(values) and int(values[place]) == value


def _first_fields(files: DumpFiles, name: str) -> Iterator[tuple[int, bytes]]:
    return ((number, fields[0]) for number, fields in files.lines(name, is_optional=True))


def _read_nodes(files: DumpFiles) -> _Tree:
    """Read which taxa there are, and check that each stands below a root."""
    from array import array

    name = "nodes.dmp"
    taxa, parents, rank = array("i"), array("i"), array("q")
    ranks: dict[bytes, int] = {}
    for number, fields in files.lines(name):
        if len(fields) < 3:
            got = shown(b"\t|\t".join(fields)[:60].decode("utf-8", "replace"))
            files.wrong(name, number, f"got {got}, expected taxid, parent and rank with <tab>|<tab> between them")
        taxa.append(files.taxid(name, number, fields[0]))
        parents.append(files.taxid(name, number, fields[1]))
        rank.append(ranks.setdefault(fields[2].strip(), len(ranks)))
    if not taxa:
        raise InputError(f"taxonomy: {files.path}: {name} is empty, expected a line for each taxon")
    order = np.argsort(taxa, kind="stable")
    ids = np.array(taxa, dtype=np.int32)[order]
    if len(twice := ids[1:][ids[1:] == ids[:-1]]):
        raise InputError(f"taxonomy: {files.path}: {name}: taxid {twice[0]} has two lines, expected one")
    up = np.array(parents, dtype=np.int32)[order]
    above = np.minimum(np.searchsorted(ids, up), len(ids) - 1)
    if len(lost := np.flatnonzero(ids[above] != up)):
        raise InputError(
            f"taxonomy: {files.path}: {name}: taxid {ids[lost[0]]} has the parent {up[lost[0]]}, which has no line"
        )
    root = above
    for _ in range(len(ids).bit_length()):
        root = root[root]
    if len(lost := np.flatnonzero(above[root] != root)):
        raise InputError(f"taxonomy: {files.path}: {name}: taxid {ids[lost[0]]} has itself as an ancestor")
    texts = [_clean(each) for each in ranks]
    return _Tree(ids, above, np.array(rank, dtype=np.int64)[order], texts)


def _clean(field: bytes) -> str:
    """Return a name as text of one line without tabs."""
    try:
        text = field.decode("utf-8")
    except UnicodeDecodeError:
        text = field.decode("latin-1")
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _read_merged(files: DumpFiles, tree: _Tree) -> dict[int, int]:
    """Read which taxids became which; chains are followed to their ends."""
    name = "merged.dmp"
    merged: dict[int, int] = {}
    for number, fields in files.lines(name, is_optional=True):
        if len(fields) < 2:
            files.wrong(name, number, "expected an old and a new taxid with <tab>|<tab> between them")
        merged[files.taxid(name, number, fields[0])] = files.taxid(name, number, fields[1])
    old = np.array(sorted(merged), dtype=np.int64)
    now = np.array([merged[each] for each in old.tolist()], dtype=np.int64)
    for _ in range(len(old).bit_length() + 1 if len(old) else 0):
        place = np.minimum(np.searchsorted(old, now), len(old) - 1)
        now = np.where(old[place] == now, now[place], now)
    if len(lost := np.flatnonzero(np.isin(now, old))):
        raise InputError(f"taxonomy: {files.path}: {name}: taxid {old[lost[0]]} was merged into itself")
    fits = np.isin(now, tree.taxa) & ~np.isin(old, tree.taxa)
    return dict(zip(old[fits].tolist(), now[fits].tolist(), strict=True))


def _with_all_above(tree: _Tree, taxids: IntArray) -> IntArray:
    """Return the places of taxa and of all above them, ascending."""
    places = np.minimum(np.searchsorted(tree.taxa, taxids), len(tree.taxa) - 1)
    places = np.unique(places[tree.taxa[places] == taxids])
    chosen = np.zeros(len(tree.taxa), dtype=bool)
    while len(places):
        chosen[places] = True
        places = np.unique(tree.above[places])
        places = places[~chosen[places]]
    return np.flatnonzero(chosen)


def _read_names(files: DumpFiles, tree: _Tree, places: IntArray) -> bytes:
    """Read what some taxa are called; return a line for each, as a `Taxonomy` has them."""
    name = "names.dmp"
    wanted = {taxid: place for place, taxid in enumerate(tree.taxa[places].tolist())}
    found: list[dict[str, str]] = [{} for _ in wanted]
    for number, fields in files.lines(name):
        if len(fields) < 4:
            files.wrong(name, number, "expected taxid, name, unique name and class with <tab>|<tab> between them")
        kind = NAME_CLASSES.get(fields[3].strip())
        if kind is not None:
            place = wanted.get(files.taxid(name, number, fields[0]))
            if place is not None:
                found[place].setdefault(kind, _clean(fields[1]))
    rows = [
        TaxonName(
            tree.ranks[rank],
            each.get("scientific", ""),
            each.get("common") or each.get("other", ""),
            each.get("blast", ""),
        )
        for each, rank in zip(found, tree.rank[places].tolist(), strict=True)
    ]
    return "\n".join("\t".join(row) for row in rows).encode()
