"""Files of alignments as structure predictors read them."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from swsearch.alphabet import Alphabet
from swsearch.db.name_lookup import names_of
from swsearch.errors import format_count
from swsearch.options.kinds import PairStrategy, Predictor
from swsearch.output_files import open_outputs
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.profiles.row_filter import MAX_SEQUENCES, RowFilter
from swsearch.report.alignments import a3m_texts
from swsearch.report.arrow import check_pyarrow
from swsearch.report.pairing import Chain, ChainRows, distinct_chains, pair_chains
from swsearch.report.profile_output import AlignmentFolder, FolderCounts, file_names, make_alignment_folder
from swsearch.results import SearchResult, alignment_of

AF3_VERSION = 1
"""Version of AlphaFold 3's JSON."""

Content = Iterable[str] | bytes
"""Content of a file, text in parts or bytes."""


@dataclass(frozen=True, eq=False)
class Job:
    """Queries whose files are written together: the chains of a complex, or a single query.

    Parameters
    ----------
    name : str
        Name of files for all of them, without an extension.
    chains : sequence of ChainRows
        One per query.
    taxids : sequence of int
        The taxid of each paired row but the first.
    alphabet : Alphabet
        That of the queries.
    """

    name: str
    chains: Sequence[ChainRows]
    taxids: Sequence[int]
    alphabet: Alphabet

    def a3m(self, alignment: QueryAlignment) -> Iterator[str]:
        """Yield an alignment as A3M."""
        return a3m_texts(alignment, self.alphabet)

    def records(self, alignment: QueryAlignment) -> list[tuple[str, str]]:
        """Return header, without ``>``, and A3M letters of each row."""
        lines = "".join(self.a3m(alignment)).split("\n")
        return [(title[1:], row) for title, row in zip(lines[:-1:2], lines[1::2], strict=True)]

    def keyed_records(self, chain: ChainRows) -> list[tuple[int, str, str]]:
        """Return place among the pairs (-1 of unpaired rows), header and A3M letters of rows with residues."""
        paired = [] if chain.paired is None else self.records(chain.paired)
        unpaired = self.records(chain.unpaired)[bool(paired) :]
        keyed = [*((place, *each) for place, each in enumerate(paired)), *((-1, *each) for each in unpaired)]
        return [each for each in keyed if each[2].strip("-")]


def _af3(job: Job) -> Iterator[tuple[str, Content]]:
    entries = []
    for places in distinct_chains([chain.unpaired for chain in job.chains]):
        chain = job.chains[places[0]]
        rows = chain.unpaired
        if chain.paired is not None:
            rows = chain.paired.with_rows(rows.take(np.arange(1, len(rows))))
        text = "".join(job.a3m(rows))
        protein = {
            "id": [_chain_letters(place) for place in places],
            "sequence": text.split("\n", 2)[1],
            "unpairedMsa": text,
            "pairedMsa": "",
            "templates": [],
        }
        entries.append({"protein": protein})
    whole = {
        "dialect": "alphafold3", "version": AF3_VERSION, "name": job.name, "modelSeeds": [1], "sequences": entries,
    }  # fmt: skip
    yield f"{job.name}.json", [json.dumps(whole, indent=1), "\n"]


def _chain_letters(place: int) -> str:
    """Return A, B ... Z, AA, AB ... of a chain."""
    before, last = divmod(place, 26)
    return (_chain_letters(before - 1) if before else "") + chr(ord("A") + last)


def _boltz(job: Job) -> Iterator[tuple[str, Content]]:
    for chain in job.chains:
        lines = (f"{key},{row}\n" for key, _, row in job.keyed_records(chain))
        yield f"{chain.name}.csv", ("key,sequence\n", *lines)


def _chai(job: Job) -> Iterator[tuple[str, Content]]:
    import pyarrow
    from pyarrow import parquet

    for chain in job.chains:
        rows = job.keyed_records(chain)
        columns = {
            "sequence": [row for _, _, row in rows],
            "source_database": ["query", *(_chai_source(title) for _, title, _ in rows[1:])],
            "pairing_key": [str(job.taxids[key - 1]) if key > 0 else "" for key, _, _ in rows],
            "comment": [title for _, title, _ in rows],
        }
        file = io.BytesIO()
        parquet.write_table(pyarrow.table(columns), file)
        yield f"{hashlib.sha256(rows[0][2].encode()).hexdigest()}.aligned.pqt", file.getvalue()


def _chai_source(title: str) -> str:
    if title.startswith("UniRef"):
        return "uniref90"
    return "uniprot" if title.startswith(("sp|", "tr|")) else "bfd_uniclust"


def _colabfold(job: Job) -> Iterator[tuple[str, Content]]:
    copies = distinct_chains([chain.unpaired for chain in job.chains])
    chains = [job.chains[places[0]] for places in copies]
    if any(chain.paired is None for chain in chains):
        yield from ((f"{chain.name}.a3m", job.a3m(chain.unpaired)) for chain in job.chains)
        return
    lengths, numbers = [chain.unpaired.n_columns for chain in chains], range(101, 101 + len(chains))
    lines = [
        f"#{','.join(map(str, lengths))}\t{','.join(str(len(places)) for places in copies)}",
        ">" + "\t".join(map(str, numbers)),
    ]
    paired = [job.records(chain.paired) for chain in chains if chain.paired is not None]
    for place, parts in enumerate(zip(*paired, strict=True)):
        if place:
            lines.append(">" + "\t".join(title for title, _ in parts))
        lines.append("".join(row for _, row in parts))
    before = 0
    for number, chain, length in zip(numbers, chains, lengths, strict=True):
        after = sum(lengths) - before - length
        for place, (title, row) in enumerate(job.records(chain.unpaired)):
            lines += [f">{title if place else number}", "-" * before + row + "-" * after]
        before += length
    yield f"{job.name}.a3m", (f"{line}\n" for line in lines)


def _protenix(job: Job) -> Iterator[tuple[str, Content]]:
    for chain in job.chains:
        yield f"{chain.name}/non_pairing.a3m", job.a3m(chain.unpaired)
        if chain.paired is None:
            continue
        titles = [f">{chain.name}", *(_uniref_title(chain.paired, k, taxid) for k, taxid in enumerate(job.taxids, 1))]
        rows = job.keyed_records(chain)
        yield f"{chain.name}/pairing.a3m", [f"{titles[key]}\n{row}\n" for key, _, row in rows if key >= 0]


def _uniref_title(alignment: QueryAlignment, row: int, taxid: int) -> str:
    """Return ``>UniRef100_P12345_9606/10-80``: Protenix reads the taxon there."""
    accession = names_of(alignment.identifiers[row]).accession.rpartition("_")[2]
    word = "".join(letter for letter in accession if letter.isascii() and letter.isalnum())
    return f">UniRef100_{word}_{taxid}/{alignment.starts[row] + 1}-{alignment.ends[row]}"


def _openfold3(job: Job) -> Iterator[tuple[str, Content]]:
    for chain in job.chains:
        yield f"{chain.name}/colabfold_main.a3m", job.a3m(chain.unpaired)
        if chain.paired is not None:
            yield f"{chain.name}/colabfold_paired.a3m", job.a3m(chain.paired)


class PredictorFiles(NamedTuple):
    """Files of a predictor."""

    files: Callable[[Job], Iterator[tuple[str, Content]]]
    """Yields name and content of each file of a job."""
    endings: tuple[str, ...]
    """Endings of the files of a query, after its name; none where files have other names."""
    has_one_file: bool = False
    """Whether the chains of a complex share a file."""


PREDICTORS: dict[Predictor, PredictorFiles] = {
    "af3": PredictorFiles(_af3, (".json",), has_one_file=True),
    "boltz": PredictorFiles(_boltz, (".csv",)),
    "chai": PredictorFiles(_chai, ()),
    "colabfold": PredictorFiles(_colabfold, (".a3m",), has_one_file=True),
    "protenix": PredictorFiles(_protenix, ("/non_pairing.a3m", "/pairing.a3m")),
    "openfold3": PredictorFiles(_openfold3, ("/colabfold_main.a3m", "/colabfold_paired.a3m")),
}
"""Writers of the files of each predictor."""


class PredictorFolder:
    """Writes files of a predictor; those that are there already are replaced.

    Parameters
    ----------
    folder : path
        Made now, if it is not there.
    identifiers : sequence of str
        Of all queries, in order.
    predictor : str
        A name in `PREDICTORS`.
    is_complex : bool
        Whether the queries are the chains of one complex.

    Raises
    ------
    InputError
        If pyarrow is missing for Chai's files.
    OutputError
        If the folder cannot be made, or nothing be written there.
    """

    def __init__(
        self, folder: Path, identifiers: Sequence[str], predictor: Predictor, is_complex: bool = False
    ) -> None:
        if predictor == "chai":
            check_pyarrow("--for chai", "write A3M for chai a3m-to-pqt without --for")
        self._predictor, self.folder, self.counts = PREDICTORS[predictor], folder, FolderCounts()
        self._complex = file_names(["_".join(identifiers)], "")[0] if is_complex else ""
        shared = is_complex and self._predictor.has_one_file
        names = [self._complex] if shared else file_names(identifiers, "")
        self.paths = [str(folder / f"{name}{ending}") for name in names for ending in self._predictor.endings]
        make_alignment_folder(folder, "--output")

    def write(self, chains: Sequence[ChainRows], taxids: Sequence[int], alphabet: Alphabet) -> None:
        """Write the files of queries that belong together; they appear when all are complete."""
        job = Job(self._complex or chains[0].name, chains, taxids, alphabet)
        files = {self.folder / name: content for name, content in self._predictor.files(job)}
        for folder in {path.parent for path in files} - {self.folder}:
            make_alignment_folder(folder, "--output")
        targets = [(str(path), isinstance(content, bytes)) for path, content in files.items()]
        with open_outputs(targets, sweep=False) as streams:
            for stream, content in zip(streams, files.values(), strict=True):
                stream.writelines([content] if isinstance(content, bytes) else content)
        self.counts.files += len(files)
        for chain in chains:
            n_rows = len(chain.unpaired) - 1 + (0 if chain.paired is None else len(chain.paired) - 1)
            self.counts.sequences += n_rows
            self.counts.alone += not n_rows


class MsaWriter:
    """Writes the alignments of queries as their results arrive, or paired ones after the last.

    Parameters
    ----------
    folder : AlignmentFolder or PredictorFolder
        Where to.
    identifiers : sequence of str
        Of all queries, in order.
    rows : RowFilter
        Selects rows.
    alphabet : Alphabet
        That of the queries.
    pair : str or None
        How rows of the chains of a complex are paired.
    """

    def __init__(
        self,
        folder: AlignmentFolder | PredictorFolder,
        identifiers: Sequence[str],
        rows: RowFilter,
        alphabet: Alphabet,
        pair: PairStrategy | None,
    ) -> None:
        self.folder, self._names, self._rows = folder, iter(file_names(identifiers, "")), rows
        self._alphabet, self._pair = alphabet, pair
        self._chains: list[Chain] = []
        self._n_taxa = 0

    def add(self, result: SearchResult) -> None:
        """Write the rows of the next query, or keep them to be paired."""
        name = next(self._names)
        if not result.query_length:
            if isinstance(self.folder, AlignmentFolder):
                self.folder.write(None)
        elif self._pair is None:
            self._write([ChainRows(name, self._rows.apply(alignment_of(result)))], [])
        else:
            self._chains.append(Chain.from_result(name, result, self._rows))

    def finish(self) -> None:
        """Pair the rows of all queries, and write them."""
        if self._pair is not None:
            rows, taxids = pair_chains(self._chains, self._pair, self._rows.max_seqs or MAX_SEQUENCES)
            self._n_taxa = len(taxids)
            self._write(rows, taxids)

    def describe(self) -> str:
        """Return a line for the summary."""
        paired = "" if self._pair is None else f", {format_count(self._n_taxa, 'paired taxon', 'paired taxa')}"
        return f"{self.folder.counts.describe(self.folder.folder)}{paired}"

    def _write(self, chains: list[ChainRows], taxids: list[int]) -> None:
        if isinstance(self.folder, PredictorFolder):
            self.folder.write(chains, taxids, self._alphabet)
            return
        for chain in chains:
            self.folder.write(chain.unpaired if chain.paired is None else chain.paired, self._alphabet)
