"""``swsearch msa``: an alignment per query, as structure predictors take them."""

# no postponed annotations: the kinds of the options follow from them
import shlex
import sys
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal

from swsearch.cli.console import checked_threads, command, say
from swsearch.cli.parameters import command_rows, takes
from swsearch.cli.search import (
    SEARCH_ROWS,
    QueriesArgument,
    SubjectsArgument,
    paths_of,
    read_queries,
    say_beforehand,
)
from swsearch.cli.search_notes import fit_notes, summary
from swsearch.cli.tables import EngineTable, MessageTable, RunTable
from swsearch.cli.urls import refuse_urls
from swsearch.cli.warm_up import warm_up_gpu
from swsearch.errors import OptionError
from swsearch.options.kinds import Integer, Percentage
from swsearch.options.row import ONLY_COMMAND, REQUIRED, Heading, Option, OptionTable, option, rows_of

MSA_HEADINGS = (
    Heading.OUTPUT,
    Heading.SCORING,
    Heading.ITERATIONS,
    Heading.ALIGNMENTS,
    Heading.HITS,
    Heading.RUNNING,
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MsaTable(OptionTable):
    """What ``swsearch msa`` writes of each query."""

    HEADING: ClassVar = Heading.ALIGNMENTS

    output: str = option(
        REQUIRED,
        "Folder of the alignments, a file per query, named after it; made if it is not there. Files that are there "
        "are replaced, each when its successor is complete.",
        metavar="FOLDER",
        interfaces=ONLY_COMMAND,
        spellings="--output -o",
        blast="out",
        others="outfile oa3m out-prefix A chkali",
        heading=Heading.OUTPUT,
    )
    outfmt: Literal["a3m", "stockholm", "fasta-aligned"] = option(
        "a3m",
        "Format of the alignments: .a3m, .sto or .afa.",
        interfaces=ONLY_COMMAND,
        heading=Heading.OUTPUT,
    )
    max_seqs: int = option(
        5000,
        "Most sequences, the query included: where there are more, those that differ most from each other.",
        Integer(),
        interfaces=ONLY_COMMAND,
    )
    min_coverage: float = option(
        0.0,
        "Least part of the query's positions that a sequence has a residue for.",
        Percentage(),
        interfaces=ONLY_COMMAND,
    )
    min_identity: float = option(
        0.0, "Least part of these residues that are the query's.", Percentage(), interfaces=ONLY_COMMAND
    )
    max_identity: float = option(
        100.0,
        "Largest part of a sequence's residues that a better one has too; 100 leaves out only what is the same at "
        "all of the query's positions.",
        Percentage(),
        interfaces=ONLY_COMMAND,
    )


OWN_WORDS: dict[str, dict[str, Any]] = {
    "iterations": {"default": 3},
    "evalue": {
        "help": "Largest E-value of a sequence.",
        "default": 1e-3,
        "unset": "",
        "heading": Heading.ALIGNMENTS,
    },
    "max_hits": {
        "help": "Most hits of a query that are aligned, the best.",
        "default": 10_000,
        "heading": Heading.ALIGNMENTS,
    },
    "max_alignments": {
        "help": "Most alignments of a subject, each a sequence of its own.",
        "heading": Heading.ALIGNMENTS,
    },
    "query_mask": {"help": "What of the queries is scored as X; alignments show the letters."},
    "subject_mask": {"help": "The same of the subjects; database is what db build --mask says."},
    "statistics": {"help": "What E-values come from: fitted (auto) or published."},
}
"""How options of a search differ here."""

MSA_OPTIONS = (
    "output query_format outfmt iterations inclusion_evalue inclusion_coverage max_included evalue max_seqs "
    "min_coverage min_identity max_identity max_hits max_alignments preset matrix gap_open gap_extend query_mask "
    "subject_mask allow_dna dbsize statistics engine device gpu_memory threads cluster task_timeout progress quiet "
    "verbose"
)
"""Options of ``swsearch msa``, in the order of its help."""


def _rows() -> dict[str, Option]:
    rows = SEARCH_ROWS | command_rows(MsaTable)
    return {name: replace(rows[name], **OWN_WORDS.get(name, {})) for name in MSA_OPTIONS.split()}


MSA_ROWS = _rows()
"""The options of ``swsearch msa``."""


@command
@takes(MSA_ROWS, MSA_HEADINGS)
def msa_command(queries: QueriesArgument, subjects: SubjectsArgument, **given: Any) -> None:
    """Search SUBJECTS in iterations, and write an alignment for each query: A3M for structure prediction."""
    refuse_urls(subjects, "msa")
    engine, run = EngineTable.of(given), RunTable.of(given)
    messages, made_of = MessageTable.of(given), MsaTable.of(given)
    if run.cluster is None and engine.engine in ("auto", "gpu"):
        warm_up_gpu(engine.device)
    from swsearch.cli.clusters import engine_for
    from swsearch.cli.displays import display_of
    from swsearch.cli.progress import SearchProgress
    from swsearch.inputs import check_subject_inputs
    from swsearch.job.options import SearchOptions
    from swsearch.output_files import check_spared
    from swsearch.profiles.filtering import RowFilter
    from swsearch.report.msa import AlignmentFolder
    from swsearch.run_info import Origin

    begun = time.monotonic()
    origin = Origin(queries, shlex.join(["swsearch", *sys.argv[1:]]), datetime.now(UTC))
    if made_of.output.strip() in ("", "-"):
        raise OptionError("output", made_of.output, "a folder for a file of each query")
    rows = RowFilter(made_of.min_coverage, made_of.min_identity, made_of.max_identity, made_of.max_seqs)
    options = SearchOptions.of({name: value for name, value in given.items() if name not in rows_of(MsaTable)})
    check_subject_inputs(queries, subjects)
    threads = checked_threads(engine.threads, messages.quiet)
    found, options = read_queries(queries, options, given["query_format"], messages.quiet)
    asked_for = paths_of(subjects)
    made, kind = engine_for(engine, run, asked_for, threads, messages)
    with made, kind(found, asked_for, options, made, threads=threads, origin=origin) as results:
        job = results.job
        job.one_by_one = True  # each file is there when its query is done
        folder = AlignmentFolder(Path(made_of.output), [query.identifier for query in found], made_of.outfmt, rows)
        read = [queries, *subjects, *(each.path for each in job.database.volumes), given["matrix"]]
        check_spared(folder.paths, read)
        say_beforehand(job, messages)
        with SearchProgress(display_of(messages.progress, messages.quiet), job.cells, len(found)) as done:
            job.progress, job.forgone = done.advance, done.forgone
            for batch in results.batches(aligned=True):
                for result in batch:
                    folder.write(result)
                    done.written(1)
        for text in fit_notes(results, messages.quiet):
            say(f"swsearch: {text}")
        if not messages.quiet:
            if options.iterations > 1:
                say(f"swsearch: {results.iterated.describe()}")
            say(f"swsearch: {folder.written.describe(folder.folder)}")
            say(summary(job, time.monotonic() - begun, done.spared_cells))
