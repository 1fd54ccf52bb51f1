"""``swsearch msa``: one multiple alignment per query, for structure predictors."""

# no postponed annotations: the kinds of the options follow from them
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from swsearch.cli.parameters import takes
from swsearch.cli.search import QueriesArgument, SearchCommand, SubjectsArgument, origin_of
from swsearch.cli.tables import CommandTable, EngineTable, MessageTable, RunTable
from swsearch.errors import InputError, OptionError
from swsearch.options.kinds import Integer, PairStrategy, Percentage, Predictor
from swsearch.options.row import REQUIRED, Heading, option, rows_of
from swsearch.output_files import canonical_path, checkpoint_folder
from swsearch.pipeline.table.scoring import QueryTable
from swsearch.pipeline.table.search import SearchTable

if TYPE_CHECKING:
    from swsearch.inputs import Query


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
    diff: int | None = option(
        None,
        "Keep the most diverse rows, until N rows cover each stretch of 50 query positions, as hhfilter -diff.",
        Integer(),
        unset="all rows",
    )
    pair: PairStrategy | None = option(
        None,
        "Pair rows of the same taxon, the queries being the chains of one complex. greedy: taxa with hits in two "
        "chains or more; complete: in all. Each chain has a taxon's best hit, with an E-value up to 0.001.",
        metavar="STRATEGY",
        unset="unpaired",
    )
    predictor: Predictor | None = option(
        None,
        "Write files for this predictor: af3 (JSON), boltz (CSV), chai (Parquet), colabfold, protenix or openfold3 "
        "(A3M).",
        metavar="NAME",
        unset="files of --outfmt",
        spellings="--predictor --for",
        heading=Heading.OUTPUT,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output.strip() in ("", "-"):
            raise OptionError("output", self.output, "a folder for a file of each query")
        if self.predictor is not None and self.outfmt != "a3m":
            raise InputError(
                f"got --for {self.predictor} and --outfmt {self.outfmt}, expected one of them; leave --outfmt out"
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
    names="output query_format outfmt predictor pair iterations profile_from inclusion_evalue inclusion_coverage "
    "max_included evalue max_seqs diff min_coverage min_identity max_identity max_hits max_alignments preset matrix "
    "gap_open gap_extend query_mask subject_mask allow_dna dbsize statistics engine device gpu_memory threads "
    "checkpoint cluster task_timeout progress quiet verbose",
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
    from swsearch.report.predictors import MsaWriter, PredictorFolder
    from swsearch.report.profile_output import AlignmentFolder, remove_if_unused

    origin = origin_of(queries)
    rows = RowFilter(made_of.min_coverage, made_of.min_identity, made_of.max_identity, made_of.max_seqs, made_of.diff)
    options = SearchOptions.from_values(
        {name: value for name, value in given.items() if name not in {row.name for row in rows_of(MsaTable).values()}}
    )
    checkpoint = None if command.run.checkpoint is None else checkpoint_folder(command.run.checkpoint)
    if checkpoint is not None and canonical_path(str(checkpoint)) == canonical_path(made_of.output):
        raise InputError(f"got --output and --checkpoint {checkpoint}, expected different folders")
    queries_read, options = command.read_queries(options)
    if made_of.pair is not None:
        _check_chains(queries, queries_read)
    with (
        command.results(queries_read, options, origin, one_by_one=True) as results,
        remove_if_unused(Path(made_of.output)),
    ):
        if checkpoint is not None:
            results.use_checkpoint(checkpoint)
        alphabet = results.search.options.scoring.matrix.alphabet  # opens the subjects, before a folder is made
        identifiers, place = [query.identifier for query in queries_read], Path(made_of.output)
        folder = (
            AlignmentFolder(place, identifiers, made_of.outfmt)
            if made_of.predictor is None
            else PredictorFolder(place, identifiers, made_of.predictor, made_of.pair is not None)
        )
        written = MsaWriter(folder, identifiers, rows, alphabet, made_of.pair)
        command.check_not_an_input(folder.paths, results, given["matrix"], given["profile_from"])
        with command.progress(results, written.describe) as done:
            for batch in results.batches(aligned=True):
                for result in batch:
                    written.add(result)
                    done.add_written(1)
            written.finish()


def _check_chains(path: str, queries: "Sequence[Query]") -> None:
    """Raise `InputError` unless the queries may be the chains of a complex."""
    for query in queries:
        if not len(query.codes):
            raise InputError(
                f"--pair: {path}: query {query.identifier!r} has no residues; remove it, or leave --pair out"
            )
    if len({query.codes.tobytes() for query in queries}) < 2:
        raise InputError(
            f"--pair: {path} has one distinct sequence, expected at least two, the chains of a complex; "
            "leave --pair out"
        )
