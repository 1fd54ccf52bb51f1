"""``swsearch msa``: one multiple alignment per query, for structure predictors."""

# no postponed annotations: the kinds of the options follow from them
from pathlib import Path
from typing import Any, ClassVar, Literal

from swsearch.cli.parameters import takes
from swsearch.cli.search import QueriesArgument, SearchCommand, SubjectsArgument, origin_of
from swsearch.cli.tables import CommandTable, EngineTable, MessageTable, RunTable
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import Integer, Percentage
from swsearch.options.row import REQUIRED, Heading, option, rows_of
from swsearch.pipeline.table.scoring import QueryTable
from swsearch.pipeline.table.search import SearchTable


class MsaTable(CommandTable):
    """Output options of ``swsearch msa``."""

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
"""Attributes of search options that differ here."""


@takes(
    QueryTable, SearchTable, MessageTable, EngineTable, RunTable, MsaTable,
    names="output query_format outfmt iterations profile_from inclusion_evalue inclusion_coverage max_included "
    "evalue max_seqs min_coverage min_identity max_identity max_hits max_alignments preset matrix gap_open "
    "gap_extend query_mask subject_mask allow_dna dbsize statistics engine device gpu_memory threads cluster "
    "task_timeout progress quiet verbose",
    **OWN_WORDS,
)  # fmt: skip
def msa_command(queries: QueriesArgument, subjects: SubjectsArgument, **given: Any) -> None:
    """Search iteratively and write one alignment per query, e.g. A3M for structure prediction."""
    command, made_of = SearchCommand(queries, subjects, given), MsaTable.from_values(given)
    if command.url is not None:
        raise InputError(
            f"subjects: got {command.url}, expected files; of servers swsearch msa asks none, search does"
        )
    from swsearch.pipeline.options import SearchOptions
    from swsearch.profiles.row_filter import RowFilter
    from swsearch.report.profile_output import AlignmentFolder
    from swsearch.results import alignment_of

    origin = origin_of(queries)
    if made_of.output.strip() in ("", "-"):
        raise OptionError("output", made_of.output, "a folder for a file of each query")
    rows = RowFilter(made_of.min_coverage, made_of.min_identity, made_of.max_identity, made_of.max_seqs)
    options = SearchOptions.from_values(
        {name: value for name, value in given.items() if name not in rows_of(MsaTable)}
    )
    queries_read, options = command.read_queries(options)
    with command.results(queries_read, options, origin, one_by_one=True) as results:
        alphabet = results.search.options.scoring.matrix.alphabet  # opens the subjects, before a folder is made
        folder = AlignmentFolder(Path(made_of.output), [query.identifier for query in queries_read], made_of.outfmt)
        command.check_not_an_input(folder.paths, results, given["matrix"], given["profile_from"])
        with command.progress(results, lambda: folder.counts.describe(folder.folder)) as done:
            for batch in results.batches(aligned=True):
                for result in batch:
                    alignment = rows.apply(alignment_of(result)) if result.query_length else None
                    folder.write(alignment, alphabet)
                    done.add_written(1)
