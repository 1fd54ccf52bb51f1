"""``swsearch msa``: an alignment per query, as structure predictors take them."""

# no postponed annotations: the kinds of the options follow from them
import time
from pathlib import Path
from typing import Any, ClassVar, Literal

from swsearch.cli.console import checked_threads
from swsearch.cli.parameters import takes
from swsearch.cli.searching import (
    QueriesArgument,
    SubjectsArgument,
    backend_for,
    origin_of,
    paths_of,
    read_queries,
    say_afterwards,
    say_beforehand,
    url_among,
)
from swsearch.cli.tables import CommandTable, EngineTable, MessageTable, RunTable
from swsearch.cli.warm_up import warm_up_gpu
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import Integer, Percentage
from swsearch.options.row import REQUIRED, Heading, option, rows_of
from swsearch.pipeline.table.scoring import QueryTable
from swsearch.pipeline.table.search import SearchTable


class MsaTable(CommandTable):
    """What ``swsearch msa`` writes of each query."""

    HEADING: ClassVar = Heading.ALIGNMENTS

    output: str = option(
        REQUIRED,
        "Output folder, created if missing. Each query gets a file with its name; existing files are replaced.",
        metavar="FOLDER",
        spellings="--output -o",
        blast="out",
        others="outfile oa3m out-prefix A chkali",
        heading=Heading.OUTPUT,
    )
    outfmt: Literal["a3m", "stockholm", "fasta-aligned"] = option(
        "a3m",
        "Format of the alignments: a3m (.a3m), stockholm (.sto) or fasta-aligned (.afa).",
        metavar="FORMAT",
        heading=Heading.OUTPUT,
    )
    max_seqs: int = option(
        5000, "Maximum number of rows, including the query; the most diverse rows are kept.", Integer()
    )
    min_coverage: float = option(0.0, "Minimum percentage of query positions that a row covers.", Percentage())
    min_identity: float = option(
        0.0, "Minimum percentage of covered positions that are identical to the query.", Percentage()
    )
    max_identity: float = option(
        100.0,
        "Maximum percentage of residues shared with a better row. 100 removes only rows that are identical at all "
        "query positions.",
        Percentage(),
    )


OWN_WORDS: dict[str, dict[str, Any]] = {
    "iterations": {"default": 3},
    "evalue": {"help": "Maximum E-value of a row.", "default": 1e-3, "unset": "", "heading": Heading.ALIGNMENTS},
    "max_hits": {
        "help": "Maximum number of hits per query to align.",
        "default": 10_000,
        "heading": Heading.ALIGNMENTS,
    },
    "max_alignments": {
        "help": "Maximum number of alignments per subject, each a row of its own.",
        "heading": Heading.ALIGNMENTS,
    },
    "query_mask": {"help": "Query residues scored as X: none, lower or tantan. Alignments show the residues."},
    "subject_mask": {
        "help": "Subject residues scored as X: database (as in db build --mask), none, lower or tantan."
    },
    "statistics": {"help": "Source of E-values: fitted (auto) or published."},
}
"""How options of a search differ here."""


@takes(
    QueryTable, SearchTable, MessageTable, EngineTable, RunTable, MsaTable,
    names="output query_format outfmt iterations inclusion_evalue inclusion_coverage max_included evalue max_seqs "
    "min_coverage min_identity max_identity max_hits max_alignments preset matrix gap_open gap_extend query_mask "
    "subject_mask allow_dna dbsize statistics engine device gpu_memory threads cluster task_timeout progress quiet "
    "verbose",
    **OWN_WORDS,
)  # fmt: skip
def msa_command(queries: QueriesArgument, subjects: SubjectsArgument, **given: Any) -> None:
    """Search iteratively and write one alignment per query, e.g. A3M for structure prediction."""
    if (url := url_among(subjects)) is not None:
        raise InputError(f"subjects: got {url}, expected files; of servers swsearch msa asks none, search does")
    engine, run = EngineTable.of(given), RunTable.of(given)
    messages, made_of = MessageTable.of(given), MsaTable.of(given)
    if run.cluster is None and engine.engine in ("auto", "gpu"):
        warm_up_gpu(engine.device)
    from swsearch.cli.progress import SearchProgress, display_of
    from swsearch.inputs import check_subject_inputs
    from swsearch.output_files import check_spared
    from swsearch.pipeline.options import SearchOptions
    from swsearch.pipeline.search_results import SearchResults
    from swsearch.profiles.filtering import RowFilter
    from swsearch.report.saved import AlignmentFolder
    from swsearch.results import alignment_of

    begun = time.monotonic()
    origin = origin_of(queries)
    if made_of.output.strip() in ("", "-"):
        raise OptionError("output", made_of.output, "a folder for a file of each query")
    rows = RowFilter(made_of.min_coverage, made_of.min_identity, made_of.max_identity, made_of.max_seqs)
    options = SearchOptions.of({name: value for name, value in given.items() if name not in rows_of(MsaTable)})
    check_subject_inputs(queries, subjects)
    threads = checked_threads(engine.threads, messages.quiet)
    found, options = read_queries(queries, options, given["query_format"], messages.quiet)
    asked_for = paths_of(subjects)
    made, backend_of = backend_for(engine, run, asked_for, threads, messages, one_by_one=True)
    with made, SearchResults(found, asked_for, options, backend_of, threads=threads, origin=origin) as results:
        search = results.search
        folder = AlignmentFolder(Path(made_of.output), [query.identifier for query in found], made_of.outfmt)
        read = [queries, *subjects, *(each.path for each in search.backend.database.volumes), given["matrix"]]
        check_spared(folder.paths, read)
        say_beforehand(search, messages)
        with SearchProgress(display_of(messages.progress, messages.quiet), search.cells, len(found)) as done:
            search.progress, search.forgone = done.advance, done.forgone
            for batch in results.batches(aligned=True):
                for result in batch:
                    alignment = rows.filtered(alignment_of(result)) if result.query_length else None
                    folder.write(alignment, options.scoring.matrix.alphabet)
                    done.written(1)
        written = folder.written.describe(folder.folder)
        say_afterwards(results, time.monotonic() - begun, done.spared_cells, messages.quiet, written=written)
