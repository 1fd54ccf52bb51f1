"""Option tables that only the command line has: engines, output, messages."""

# no postponed annotations: the kinds of the options follow from them
import re
from typing import Any, ClassVar

from swsearch.errors import OptionError
from swsearch.options.kinds import ByteSize, EngineChoice, Integer, ProgressKind, Real, Repeated, ValueKind
from swsearch.options.row import NO_SERVER, ONLY_COMMAND, Heading, OptionTable, option


class DeviceNumbers(ValueKind):
    """Numbers of GPUs, or ``all``."""

    metavar: ClassVar[str] = "N,...|all"

    def check(self, name: str, value: Any) -> Any:
        return value  # `swsearch.engines` checks it against the GPUs of the machine

    def parse(self, name: str, text: str) -> int | tuple[int, ...] | str:
        if text.strip().lower() == "all":
            return "all"
        if not re.fullmatch(r"\s*(?:0|[1-9]\d{0,8})\s*(?:,\s*(?:0|[1-9]\d{0,8})\s*){0,63}", text, re.ASCII):
            from swsearch.engines.devices import available_devices_message

            expected = "the number of a GPU, several with commas between them, such as 0,1, or all"
            raise OptionError(name, text, expected, available_devices_message())
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


class OutputTable(CommandTable):
    """Output options of a search."""

    HEADING: ClassVar = Heading.OUTPUT

    output: tuple[str, ...] = option(
        (),
        "Output file; repeat for several formats.",
        Repeated(),
        unset="stdout",
        metavar="FILE",
        spellings="--output -o",
        blast="out",
        others="outfile of result-file",
    )
    outfmt: tuple[str, ...] = option(
        (),
        "0 pairwise, 5 XML, 6 tabular, 7 tabular with comments, 10 CSV, 15 or json, jsonl, html, sam, paf, "
        "parquet, arrow, a3m, fasta-aligned, stockholm. Choose columns as in '6 qseqid sseqid evalue'.",
        ReportFormats(),
        metavar="FORMAT",
        unset="from the file extension, else 6",
        blast="outfmt",
        others="format f m format-mode format-output aformat output-format",
    )
    header: bool = option(False, "Start --outfmt 6 and 10 with a line of column names.")
    save_profile: str | None = option(
        None,
        "Save each query's final profile, to continue in another search: .json or .jsonl (JSON lines), .hmm "
        "(HMMER), or for one query .asn, .smp, .chk (PSI-BLAST), .pssm (PSI-BLAST, ASCII) or .hhm (HH-suite).",
        FileName(),
        unset="none",
        heading=Heading.ITERATIONS,
    )
    save_msa: str | None = option(
        None,
        "Save the alignments behind these profiles: a folder (A3M files) or one .sto file (Stockholm).",
        unset="none",
        metavar="PATH",
        heading=Heading.ITERATIONS,
    )
    save_config: str | None = option(
        None,
        "Save all options that affect the hits as TOML, for --config.",
        unset="none",
        metavar="PATH",
        others="export-search-strategy",
    )


class OneOutputTable(CommandTable):
    """Output option of commands that write one file."""

    HEADING: ClassVar = Heading.OUTPUT

    output: str | None = option(
        None, "Output file.", FileName(), unset="stdout", spellings="--output -o", others="out outfile of result-file"
    )


class MessageTable(CommandTable):
    """Options of messages on stderr."""

    HEADING: ClassVar = Heading.OUTPUT

    progress: ProgressKind = option(
        "auto", "Style of progress reports on stderr: auto, bar, lines, json or none.", metavar="STYLE"
    )
    quiet: bool = option(False, "Print no progress and no summary.", spellings="--quiet -q", others="silent")
    verbose: bool = option(False, "Print details about the run.", spellings="--verbose -v")


class EngineTable(OptionTable):
    """Engine and processors."""

    HEADING: ClassVar = Heading.RUNNING
    INTERFACES: ClassVar = NO_SERVER

    engine: EngineChoice = option("auto", "auto (GPU if usable, else CPU), gpu, cpu or reference (slow, for tests).")
    device: Any = option(
        None,
        "GPUs to use, as numbered by swsearch doctor.",
        DeviceNumbers(),
        unset="the one with the most multiprocessors",
    )
    gpu_memory: int | None = option(
        None,
        "Maximum memory per GPU, e.g. 8G; larger databases are streamed.",
        ByteSize(),
        unset="nearly all free memory",
    )
    threads: int | None = option(
        None,
        "Number of CPU threads.",
        Integer(),
        unset="one per processor",
        blast="num-threads",
        others="nthreads thread cpu cpus jobs T p t j",
    )


class RunTable(CommandTable):
    """Files and processes of a search."""

    HEADING: ClassVar = Heading.RUNNING

    config: str | None = option(
        None,
        "Read options from TOML, or from a jsonl or html report. The command line overrides them.",
        unset="none",
        metavar="PATH",
        others="import-search-strategy config-file",
    )
    checkpoint: str | None = option(
        None,
        "Save finished queries; the same command resumes an interrupted search.",
        unset="none",
        metavar="FOLDER",
        interfaces=NO_SERVER,
    )
    cluster: str | None = option(
        None,
        "Search on a Dask cluster (scheduler address) or on N local worker processes.",
        unset="none",
        metavar="ADDRESS|local:N",
    )
    task_timeout: float | None = option(
        None,
        "With --cluster: reassign tasks of a worker that returns no result for this long.",
        Real(is_positive=True, expected="a number of seconds > 0, such as 600"),
        unset="20 x similar tasks",
        metavar="SECONDS",
        requires="cluster",
    )
