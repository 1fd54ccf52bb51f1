"""Option tables of the command line alone: engines, output and messages."""

# no postponed annotations: the kinds of the options follow from them
import re
from dataclasses import dataclass
from typing import Any, ClassVar

from swsearch.errors import OptionError
from swsearch.options.kinds import ByteSize, Integer, Real, Repeated, ValueKind
from swsearch.options.row import NO_SERVER, ONLY_COMMAND, Heading, OptionTable, option
from swsearch.options.words import EngineChoice, ProgressKind


class DeviceNumbers(ValueKind):
    """Numbers of GPUs, or ``all``."""

    metavar: ClassVar[str] = "N,...|all"

    def check(self, name: str, value: Any) -> Any:
        return value  # `swsearch.engines` checks it against the GPUs of the machine

    def parse(self, name: str, text: str) -> int | tuple[int, ...] | str:
        if text.strip().lower() == "all":
            return "all"
        if not re.fullmatch(r"\s*(?:0|[1-9]\d{0,8})\s*(?:,\s*(?:0|[1-9]\d{0,8})\s*){0,63}", text, re.ASCII):
            from swsearch.engines.devices import devices_there

            expected = "the number of a GPU, several with commas between them, such as 0,1, or all"
            raise OptionError(name, text, expected, devices_there())
        numbers = tuple(int(each) for each in text.split(","))
        return numbers[0] if len(numbers) == 1 else numbers


class FileName(ValueKind):
    """The name of a file."""

    metavar: ClassVar[str] = "FILE"


class ReportFormats(Repeated):
    """Formats of reports, one for each output."""

    metavar: ClassVar[str] = "FMT"

    def complete(self, prefix: str) -> list[str]:
        from swsearch.report import FORMATS

        return [name for name in FORMATS if name.startswith(prefix)]


class CommandTable(OptionTable):
    """Options of the command line alone."""

    INTERFACES: ClassVar = ONLY_COMMAND


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OutputTable(CommandTable):
    """What a search writes."""

    HEADING: ClassVar = Heading.OUTPUT

    output: tuple[str, ...] = option(
        (),
        "Where to write; again for a further file, of another format.",
        Repeated(),
        unset="stdout",
        metavar="FILE",
        spellings="--output -o",
        blast="out",
        others="outfile of result-file",
    )
    outfmt: tuple[str, ...] = option(
        (),
        "0 pairwise, 5 BLAST XML, 6 tabular, 7 tabular with comments, 10 comma separated, 15 or json BLAST's JSON, "
        "jsonl (a line of JSON per query), html, sam, paf, parquet, arrow, a3m, fasta-aligned, stockholm (the hits "
        "below the query); '6 qseqid sseqid score ...' chooses columns. With several outputs one for each, in the "
        "same order.",
        ReportFormats(),
        unset="by the file's extension, else 6",
        blast="outfmt",
        others="format f m format-mode format-output aformat output-format",
    )
    header: bool = option(False, "Begin tables of --outfmt 6 and 10 with the columns' names.")
    save_profile: str | None = option(
        None,
        "Save the profile that the last iteration makes of each query, in the format of FILE's ending: .json or "
        ".jsonl (JSON lines, as - on stdout; another search goes on from it), .hmm (HMMER), or for one query .asn, "
        ".smp or .chk (psiblast -in_pssm), .pssm (psiblast's ASCII), .hhm (HH-suite).",
        FileName(),
        unset="none",
        heading=Heading.ITERATIONS,
    )
    save_msa: str | None = option(
        None,
        "Save the alignments that these profiles are made of: a folder for a file of A3M per query, or a name that "
        "ends in .sto for all as Stockholm.",
        unset="none",
        metavar="PATH",
        heading=Heading.ITERATIONS,
    )
    save_config: str | None = option(
        None,
        "Write there what decides the hits of this search, defaults included, for --config.",
        unset="none",
        metavar="PATH",
        others="export-search-strategy",
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OneOutputTable(CommandTable):
    """Where a command writes that writes one file."""

    HEADING: ClassVar = Heading.OUTPUT

    output: str | None = option(
        None,
        "Where to write.",
        FileName(),
        unset="stdout",
        spellings="--output -o",
        others="out outfile of result-file",
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MessageTable(CommandTable):
    """What stderr says."""

    HEADING: ClassVar = Heading.OUTPUT

    progress: ProgressKind = option(
        "auto",
        "How stderr tells how far the work is: a bar, lines from time to time, or objects of JSON, one per line; "
        "auto is a bar in a terminal, lines elsewhere, and nothing with --quiet.",
    )
    quiet: bool = option(False, "No progress, no summary.", spellings="--quiet -q", others="silent")
    verbose: bool = option(False, "Say more about the run.", spellings="--verbose -v")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EngineTable(OptionTable):
    """Engine and processors."""

    HEADING: ClassVar = Heading.RUNNING
    INTERFACES: ClassVar = NO_SERVER

    engine: EngineChoice = option("auto", "What scores; auto is the GPU where it can be used, else the CPU.")
    device: Any = option(
        None,
        "Which GPU, as swsearch doctor numbers them; several, which share the work, with commas between them (0,1), "
        "or all that can be used.",
        DeviceNumbers(),
        unset="the one with the most multiprocessors",
    )
    gpu_memory: int | None = option(
        None,
        "Most GPU memory to use, on each GPU, such as 512M or 2G; a larger database streams.",
        ByteSize(),
        unset="nearly all that is free",
    )
    threads: int | None = option(
        None,
        "Worker threads, at most one a processor.",
        Integer(),
        unset="one a processor",
        blast="num-threads",
        others="nthreads thread cpu cpus jobs T p t j",
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RunTable(CommandTable):
    """Files and processes of a search."""

    HEADING: ClassVar = Heading.RUNNING

    config: str | None = option(
        None,
        "Options from a file of TOML, by long names (max-hits = 10), or of a report of --outfmt jsonl or html, which "
        "holds those of its search. The command line goes before them.",
        unset="none",
        metavar="PATH",
        others="import-search-strategy config-file",
    )
    checkpoint: str | None = option(
        None,
        "Keep what is done there; the same command goes on from it when it was ended or killed, and writes the same. "
        "What is kept of other inputs, options or another version is refused.",
        unset="none",
        metavar="FOLDER",
        interfaces=NO_SERVER,
    )
    cluster: str | None = option(
        None,
        "Search by the workers of a Dask cluster: the address of its scheduler, such as tcp://host:8786, or N "
        "workers on this machine, among which --threads are divided. SUBJECTS are then database files that they can "
        "read; --engine and --gpu-memory are for each of them, and each takes a GPU of its own.",
        unset="none",
        metavar="ADDRESS|local:N",
    )
    task_timeout: float | None = option(
        None,
        "With --cluster: a worker that gives nothing for so long counts as lost, and others do its work.",
        Real(is_positive=True, expected="a number of seconds > 0, such as 600"),
        unset="20 times what such tasks took before",
        metavar="SECONDS",
        requires="cluster",
    )
