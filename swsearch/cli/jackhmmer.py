"""``swsearch-jackhmmer``: a command with the options that AlphaFold 3 gives jackhmmer.

Rows are the parts of hits that would enter a profile: they share no residue of a subject, as domains of jackhmmer.
"""

# no postponed annotations: the kinds of the options follow from them
import os
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from swsearch.cli.argument_checks import CheckedCommand
from swsearch.cli.console import limit_threads, print_message
from swsearch.cli.main import collect_garbage
from swsearch.cli.main import main as run_command
from swsearch.cli.parameters import takes
from swsearch.cli.tables import CommandTable, EngineTable, FileName
from swsearch.errors import InputError
from swsearch.options.kinds import Integer, Real
from swsearch.options.row import Heading, option
from swsearch.output_files import canonical_path, check_not_an_input, open_outputs
from swsearch.pipeline.table.search import MAX_INCLUDED, SearchTable

if TYPE_CHECKING:
    from swsearch.profiles.query_alignment import QueryAlignment
    from swsearch.results import SearchResult

NAME = "swsearch-jackhmmer"

ALL_PARTS = {"columns": 0, "low_complexity": None, "coiled_coil": None, "ends": None}
"""Inclusion rules of a single search, whose profile is not searched with: the E-value decides."""


class JackhmmerTable(CommandTable):
    """Options of ``swsearch-jackhmmer`` that searches do not have."""

    HEADING: ClassVar = Heading.OUTPUT

    output: str = option("-", "File of the table of hits.", FileName(), spellings="--output -o", unset="stdout")
    alignment: str | None = option(
        None, "Save query and rows as Stockholm.", FileName(), spellings="--alignment -A", unset="none"
    )
    table: str | None = option(
        None, "Save the table of hits, in HMMER's 19 columns.", FileName(), spellings="--tblout", unset="none"
    )
    seq_limit: int | None = option(
        None, "Maximum number of rows, including the query; the best are kept.", Integer(1, MAX_INCLUDED),
        spellings="--seq_limit", unset="all",
    )  # fmt: skip
    comparisons: float | None = option(
        None, "Number of subjects that E-values refer to.", Real(is_positive=True), spellings="--comparisons -Z",
        unset="actual number", heading=Heading.HITS,
    )  # fmt: skip
    noali: bool = option(False, "Ignored: -o has no alignments.", spellings="--noali")
    f1: float | None = option(None, "Ignored, as F2 and F3: swsearch has no filters.", spellings="--F1", unset="none")
    f2: float | None = option(None, "Ignored.", spellings="--F2", unset="none")
    f3: float | None = option(None, "Ignored.", spellings="--F3", unset="none")
    dom_evalue: float | None = option(
        None, "Ignored: each row has an E-value up to --incE by itself.", spellings="--domE", unset="none"
    )
    dom_comparisons: float | None = option(None, "Ignored.", spellings="--domZ", unset="none")

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [canonical_path(path) for path, _ in self.outputs() if path not in (None, os.devnull)]
        if len(set(names)) < len(names):
            raise InputError("got the same file twice among -o, -A and --tblout, expected different files")

    def outputs(self) -> list[tuple[str | None, bool]]:
        """Return the path of each output, and whether it is the alignment."""
        return [(self.output, False), (self.alignment, True), (self.table, False)]


@takes(
    JackhmmerTable, SearchTable, EngineTable,
    names="output alignment tblout seq_limit evalue inclusion_evalue comparisons iterations threads engine device "
    "gpu_memory noali F1 F2 F3 domE domZ",
    evalue={"spellings": "-E", "default": 10.0, "unset": ""},
    inclusion_evalue={"spellings": "--incE", "default": 1e-3, "unset": "", "heading": Heading.HITS,
                      "help": "Maximum E-value of a row, and of a hit in a profile; no more than -E."},
    iterations={"spellings": "-N", "default": 5, "heading": Heading.HITS},
    threads={"spellings": "--cpu", "default": 2, "unset": ""},
)  # fmt: skip
def jackhmmer_command(
    queries: Annotated[str, typer.Argument(metavar="QUERY", help="FASTA file.")],
    subjects: Annotated[str, typer.Argument(metavar="DATABASE", help="Database, manifest or FASTA file.")],
    **given: Any,
) -> None:
    """Search as swsearch does, with the options of jackhmmer that AlphaFold 3 uses.

    Give AlphaFold 3 --jackhmmer_binary_path=$(which swsearch-jackhmmer), and databases of swsearch db build in place
    of FASTA files.
    """
    import numpy as np

    from swsearch.api import search
    from swsearch.inputs import open_subjects
    from swsearch.pipeline.inclusion import Inclusion
    from swsearch.report.alignments import stockholm_texts

    own, engine = JackhmmerTable.from_values(given), EngineTable.from_values(given)
    outputs = [(path, is_msa) for path, is_msa in own.outputs() if path is not None]
    check_not_an_input([path for path, _ in outputs], [queries, subjects])
    iterations, max_rows = given["iterations"], own.seq_limit or MAX_INCLUDED
    rules: dict[str, Any] = ALL_PARTS if iterations == 1 else {}
    inclusion = Inclusion(min(given["evalue"], given["inclusion_evalue"]), max_rows, **rules)
    with (
        open_outputs([(path, False) for path, _ in outputs]) as streams,
        open_subjects(Path(subjects), allow_dna=True) as database,
    ):
        share = 1.0 if own.comparisons is None else own.comparisons / max(1, database.n_subjects)
        with search(
            Path(queries), database, query_format="fasta", allow_dna=True, preset="default", evalue=given["evalue"],
            iterations=iterations, inclusion=inclusion, keep_profiles=True, max_hits=max_rows,
            dbsize=max(1, round(database.n_residues * share)), engine=engine.engine, device=engine.device,
            gpu_memory=engine.gpu_memory, threads=limit_threads(max(1, engine.threads or 1), quiet=True),
        ) as results:  # fmt: skip
            for result in results:
                if result.next_profile is None or (rows := result.next_profile.alignment) is None:
                    continue  # a query without residues
                best = rows.take(np.arange(min(max_rows, len(rows))))
                for stream, (_, is_msa) in zip(streams, outputs, strict=True):
                    stream.writelines(
                        stockholm_texts(best, result.scoring.matrix.alphabet, gap="-")
                        if is_msa
                        else _table_lines(result, rows)
                    )
            for text in results.no_evalue_reasons:
                print_message(text)


def _table_lines(result: "SearchResult", rows: "QueryAlignment") -> Iterator[str]:
    """Yield the hits of a query as a table of HMMER: name in column 1, E-value in 5 and score in bits in 6."""
    from swsearch.report.alignments import row_identifiers
    from swsearch.report.headers import one_line

    yield "# target name accession query name accession E-value score bias E-value score bias exp reg clu ov env dom"
    yield " rep inc description of target\n"
    (query,) = row_identifiers([result.query_id])
    counts = Counter(rows.subjects.tolist())
    for name, hit in zip(row_identifiers([hit.subject_id for hit in result.hits]), result.hits, strict=True):
        n = counts[hit.subject_index]
        scores = f"{hit.evalue:9.3g} {hit.bit_score:6.1f}   0.0"
        yield f"{name:<20} -          {query:<20} -          {scores} {scores} "
        yield f"{max(n, 1):5.1f} {n:3} 0 0 {n:3} {n:3} {n:3} {n:3} {one_line(hit.subject_description) or '-'}\n"


def main() -> int:
    """Run the command and return the exit code."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    settings = {"help_option_names": ["-h", "--help"]}
    app.command(NAME, cls=CheckedCommand, context_settings=settings)(jackhmmer_command)
    collect_garbage()
    return run_command(partial(app, prog_name=NAME))
