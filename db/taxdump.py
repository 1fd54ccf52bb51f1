"""Reader of NCBI's taxonomy: nodes.dmp, names.dmp and merged.dmp."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from swsearch.blocks import IntArray
from swsearch.db.taxonomy import MAX_TAXID, TaxidArray, TaxonName, Taxonomy, in_circles, pool_of_names
from swsearch.errors import InputError, format_value

NAME_CLASSES = (b"scientific name", b"genbank common name", b"common name", b"blast name")
"""Names of a taxon that are kept; the first other common name counts where GenBank has none."""

MAX_LINE = 1 << 16
"""Bytes of a line; NCBI's longest have about 1,000, in nodes.dmp's comments."""

DUMP_COLUMNS = {
    "nodes.dmp": (2, 3, "taxid, parent and rank"),
    "names.dmp": (1, 4, "taxid, name, unique name and class"),
    "merged.dmp": (2, 2, "an old and a new taxid"),
}
"""Files that are read: how many columns are taxids, how many are read, and what they hold."""


class TaxdumpFiles(ExitStack):
    """Files of a taxonomy in a folder, or in a tar file, compressed or not."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self.path = os.fsdecode(path)
        self._opening: dict[str, Callable[[], Any]]
        try:
            if (folder := Path(self.path)).is_dir():
                self._opening = {each.name: partial(each.open, "rb") for each in folder.iterdir() if each.is_file()}
            else:
                tar = self.enter_context(tarfile.open(self.path))  # noqa: SIM115
                files = [each for each in tar if each.isfile()]
                self._opening = {Path(each.name).name: partial(tar.extractfile, each) for each in files}
        except (OSError, ValueError, EOFError, tarfile.TarError) as error:
            self.close()
            reason = getattr(error, "strerror", None) or "is not a tar file"
            expected = "expected a folder with NCBI's nodes.dmp and names.dmp, or taxdump.tar.gz"
            raise InputError(f"taxonomy: {self.path}: {reason}; {expected}") from error
        for name in ("nodes.dmp", "names.dmp"):
            if name not in self._opening:
                self.close()
                raise self.error(f"{name} not found, expected NCBI's nodes.dmp and names.dmp")

    def error(self, problem: str) -> InputError:
        """Return the error for a problem of the taxonomy."""
        return InputError(f"taxonomy: {self.path}: {problem}")

    def rows(self, name: str) -> Iterator[list[Any]]:
        """Yield the columns of each line of a file, taxids as numbers; none of a file that is not there."""
        n_taxids, n_columns, columns = DUMP_COLUMNS[name]
        try:
            with self._opening.get(name, BytesIO)() as file:
                for number, line in enumerate(iter(partial(file.readline, MAX_LINE), b""), 1):
                    fields = line.rstrip(b"\r\n").removesuffix(b"\t|").split(b"\t|\t", n_columns)
                    taxids = [*map(_taxid, fields[:n_taxids])]
                    if len(fields) >= n_columns and all(taxids):
                        yield taxids + fields[n_taxids:n_columns]
                    elif not line.isspace():
                        got, expected = line.rstrip()[:60], f"{columns} with <tab>|<tab> between them"
                        if len(fields) >= n_columns:
                            got = fields[taxids.index(0)][:40]
                            expected = f"a taxid, a number from 1 to {MAX_TAXID:,}"
                        text = format_value(got.decode("utf-8", "replace"))
                        raise self.error(f"{name}, line {number:,}: got {text}, expected {expected}")
        except (OSError, EOFError, tarfile.TarError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise self.error(f"{name}: cannot be read: {reason}") from error


def _taxid(field: bytes) -> int:
    """Return the taxid that a field holds; 0 for none."""
    digits = field.strip()
    taxid = int(digits) if len(digits) <= 10 and digits.isdigit() else 0
    return taxid if taxid <= MAX_TAXID else 0


def read_taxonomy(path: str | os.PathLike[str], taxids: TaxidArray) -> Taxonomy:
    """Read the part of NCBI's taxonomy with the subjects' taxids, shape (n,), int32, from a folder or tar file.

    It takes about 30 bytes of memory for each taxon of the file.
    """
    with TaxdumpFiles(path) as files:
        taxa, above, rank, ranks = _read_nodes(files)
        old, now = _read_merged(files, taxa)
        places = _with_all_above(above, np.flatnonzero(np.isin(taxa, _replace_merged(taxids, old, now))))
        kept_taxids = taxa[places]
        names = _read_names(files, kept_taxids, [ranks[each] for each in rank[places].tolist()])
        fits = np.isin(now, kept_taxids)
        return Taxonomy(kept_taxids, taxa[above[places]], pool_of_names(names), old[fits], now[fits])


def _read_nodes(files: TaxdumpFiles) -> tuple[TaxidArray, IntArray, TaxidArray, list[str]]:
    """Return all taxids, ascending, the place of the taxon above each, and the number of its rank; and all ranks."""
    ranks: dict[bytes, int] = {}
    numbers = ((taxid, parent, ranks.setdefault(rank, len(ranks))) for taxid, parent, rank in files.rows("nodes.dmp"))
    rows = np.fromiter(numbers, dtype=np.dtype((np.int32, 3)))
    if not len(rows):
        raise files.error("nodes.dmp is empty, expected a line for each taxon")
    taxa, parents, rank = np.ascontiguousarray(rows[np.argsort(rows[:, 0], kind="stable")].T)
    if len(twice := taxa[1:][taxa[1:] == taxa[:-1]]):
        raise files.error(f"nodes.dmp: taxid {twice[0]} has two lines, expected one")
    above = np.searchsorted(taxa[:-1], parents)
    if len(lost := np.flatnonzero(taxa[above] != parents)):
        raise files.error(f"nodes.dmp: taxid {taxa[lost[0]]} has the parent {parents[lost[0]]}, which has no line")
    if len(lost := in_circles(above)):
        raise files.error(f"nodes.dmp: taxid {taxa[lost[0]]} has itself as an ancestor")
    return taxa, above, rank, [*map(_clean, ranks)]


def _read_merged(files: TaxdumpFiles, taxa: TaxidArray) -> tuple[TaxidArray, TaxidArray]:
    """Return taxids that taxa had before, ascending, and those that they have; chains are followed to their ends."""
    merged: dict[int, int] = dict(files.rows("merged.dmp"))
    old = np.array(sorted(merged), dtype=np.int32)
    now = np.array([merged[each] for each in old.tolist()], dtype=np.int32)
    for _ in range(len(old).bit_length() + 1):
        now = _replace_merged(now, old, now)
    if len(lost := np.flatnonzero(np.isin(now, old))):
        raise files.error(f"merged.dmp: taxid {old[lost[0]]} was merged into itself")
    fits = np.isin(now, taxa) & ~np.isin(old, taxa)
    return old[fits], now[fits]


def _replace_merged(taxids: TaxidArray, old: TaxidArray, now: TaxidArray) -> TaxidArray:
    """Return taxids, shape (n,), with those that are among ``old``, ascending, replaced by those in ``now``."""
    if not len(old):
        return taxids
    places = np.searchsorted(old[:-1], taxids)
    return np.where(old[places] == taxids, now[places], taxids)


def _with_all_above(above: IntArray, places: IntArray) -> IntArray:
    """Return the places of taxa and of all above them, ascending."""
    chosen = np.zeros(len(above), dtype=bool)
    while len(places):
        chosen[places] = True
        places = np.unique(above[places])
        places = places[~chosen[places]]
    return np.flatnonzero(chosen)


def _read_names(files: TaxdumpFiles, taxa: TaxidArray, ranks: list[str]) -> list[TaxonName]:
    """Return the names of some taxa, whose ranks are known."""
    rank_by_taxid = dict(zip(taxa.tolist(), ranks, strict=True))
    by_class: dict[bytes, dict[int, str]] = {kind: {} for kind in NAME_CLASSES}
    for taxid, name, _, kind in files.rows("names.dmp"):
        if taxid in rank_by_taxid and (names := by_class.get(kind.strip())) is not None:
            names.setdefault(taxid, _clean(name))
    scientific, genbank, common, blast = by_class.values()
    return [
        TaxonName(rank, scientific.get(taxid, ""), genbank.get(taxid) or common.get(taxid, ""), blast.get(taxid, ""))
        for taxid, rank in rank_by_taxid.items()
    ]


def _clean(field: bytes) -> str:
    """Return a name as text of one line without tabs."""
    try:
        text = field.decode("utf-8")
    except UnicodeDecodeError:
        text = field.decode("latin-1")
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(text.split())
