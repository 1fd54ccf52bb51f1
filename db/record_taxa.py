"""The taxa of records that stream into a database."""

from __future__ import annotations

import warnings

import numpy as np

from swsearch.db.container import SegmentSink
from swsearch.db.records import Records
from swsearch.db.segment_writer import write_taxids
from swsearch.db.strips import Strips
from swsearch.db.taxdump import read_taxonomy
from swsearch.db.taxid_assignment import FROM_HEADERS, TaxidFile, TaxonSources, notes, taxids_in_headers
from swsearch.db.taxonomy import TaxidArray, Taxonomy
from swsearch.errors import SwsearchWarning


class RecordTaxa:
    """Finds the taxids of records, and writes them with what stands above them.

    Parameters
    ----------
    sources : TaxonSources, optional
        What says them; None where records have them, or nothing is known.
    taxonomy : Taxonomy, optional
        What is written where the sources have none.
    """

    def __init__(self, sources: TaxonSources | None, taxonomy: Taxonomy | None = None) -> None:
        self._sources, self._taxonomy = sources, taxonomy or Taxonomy.empty()
        self._file = TaxidFile(sources.taxids) if sources and sources.taxids != FROM_HEADERS else None
        self._n = self._n_filled = 0
        self._kinds: TaxidArray = np.empty(0, dtype=np.int32)
        self.there = Taxonomy.empty()
        """That of the database that the records come to."""

    def take(self, records: Records) -> None:
        """Give records their taxids, as far as they are known now."""
        if self._file is not None:
            self._file.add(records.headers, self._n)
        elif self._sources is not None:
            records.parts["taxids"] = taxids_in_headers(records.headers)
            self._count(records.parts["taxids"])
        else:
            nothing = Strips(np.empty(0, dtype=np.int32), np.zeros(len(records) + 1, dtype=np.int64))
            records.parts.setdefault("taxids", nothing)
        self._n += len(records)

    def _count(self, taxids: Strips) -> None:
        self._kinds = np.union1d(self._kinds, taxids.data).astype(np.int32)
        self._n_filled += int((taxids.counts > 0).sum())

    def write(self, files: list[list[SegmentSink]]) -> None:
        """Write into the segments of files what is missing: taxids that a file says, and what stands above all.

        Warns
        -----
        SwsearchWarning
            Of records without a taxid, and of taxids that the taxonomy lacks.
        """
        if self._file is not None:
            owners, taxids = self._file.found()
            every = Strips.of(taxids, np.bincount(owners, minlength=self._n))
            self._count(every)
            first = 0
            for sink in (sink for sinks in files for sink in sinks):
                last = first + int(sink.attributes["n_subjects"])
                write_taxids(sink, every.part(first, last))
                first = last
        tree, nothing = self._taxonomy, Taxonomy.empty()
        if self._sources is not None and self._sources.taxonomy is not None:
            tree = read_taxonomy(self._sources.taxonomy, self._kinds)
        for sinks in files:
            for sink in sinks:
                for name, values in (tree if sink is sinks[0] else nothing).arrays().items():
                    sink.put(name, values)
        if self._sources is not None:
            held = tree if self._sources.taxonomy is not None else self.there
            for note in notes(self._sources, self._n, self._n_filled, self._kinds, held):
                warnings.warn(note, SwsearchWarning, stacklevel=4)
