"""``swsearch search`` of a database on a server: the server searches and writes; the files are downloaded here."""

from __future__ import annotations

import fcntl
import re
import shutil
import time
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from swsearch.cli.console import say, size_of
from swsearch.cli.progress import SearchProgress, display_of
from swsearch.cli.searching import SearchCommand, summary
from swsearch.errors import InputError, ServerError

if TYPE_CHECKING:
    from swsearch.cli.tables import EngineTable, MessageTable, OutputTable, RunTable
    from swsearch.client.job import ServerJob
    from swsearch.pipeline.options import SearchOptions
    from swsearch.report.outputs import Output
    from swsearch.run_info import Origin


def _check_options(url: str, engine: EngineTable, run: RunTable) -> None:
    """Raise `InputError` for an option that says how a search runs on this machine."""
    refused = {
        "engine": (None if engine.engine == "auto" else engine.engine, "the server has its own engine"),
        "threads": (engine.threads, "the server has its own threads"),
        "device": (engine.device, "the server has its own devices"),
        "gpu-memory": (engine.gpu_memory, "the server decides about its memory"),
        "cluster": (run.cluster, "the server searches with its own machine"),
        "task-timeout": (run.task_timeout, "the server searches with its own machine"),
    }
    for name, (value, why) in refused.items():
        if value is not None:
            raise InputError(f"got --{name} {value} with {url}, expected none: {why}; leave it out")


def run_remote_search(
    command: SearchCommand, origin: Origin, options: SearchOptions, outputs: Sequence[Output], written: OutputTable
) -> None:
    """Have a server search, and download the outputs.

    Raises
    ------
    SwsearchError
        If something cannot be read, written or searched.
    """
    from swsearch.client.client import Client
    from swsearch.client.search_request import request_for
    from swsearch.output_files import check_spared
    from swsearch.report.job_outputs import saved_formats

    begun, url, run, messages = time.monotonic(), str(command.url), command.run, command.messages
    _check_options(url, command.engine, run)
    if not origin.queries.strip():
        raise InputError("queries: the name is empty, expected a file, or - for stdin")
    read = [origin.queries, *origin.files.values(), run.config]
    saved = [each for each in (written.save_profile, written.save_msa) if each is not None]
    paths = [*(each.path for each in outputs), *saved]
    formats = [*(each.outfmt for each in outputs), *saved_formats(written.save_profile, written.save_msa)]
    check_spared(paths, read)
    doubts = options.filters.doubts()
    with Client(url, notice=None if messages.quiet else say) as client, _submission_key(run.checkpoint) as key:
        database = client.database()
        size = size_of(database.get("n_subjects", 0), database.get("n_residues", 0))
        engine = database.get("engine", "unknown")
        if messages.verbose:
            say(f"{client.url}: {database['name']}: {size}; engine {engine}")
        request = request_for(
            database["name"], Path(origin.queries), options, origin, query_format=command.query_format,
            outputs=formats, header=written.header,
        )  # fmt: skip
        job = client.submit_request(request, "" if key is None else key.read_text())
        try:
            if job.stated.get("outputs") != formats:
                raise ServerError(f"{client.url}: accepted other outputs; install the same version on both sides")
            _download(job, formats, paths, read, messages)
        except BaseException:
            if key is None or job.stated["state"] in ("failed", "cancelled"):
                _end(job, key)
            else:
                say(f"{client.url}: keeps job {job.identifier}; the same command goes on with it")
            raise
        _end(job, key)
        for note in job.stated.get("notes", ()):
            if note not in doubts:
                say(note)
        if not messages.quiet:
            n_queries, cells = job.stated.get("n_queries", 0), job.stated.get("cells", 0)
            done = summary(n_queries, size, cells, time.monotonic() - begun, engine)
            say(f"{done}, at {client.url}/{database['name']}")


@contextmanager
def _submission_key(checkpoint: str | None) -> Iterator[Path | None]:
    """Lock the folder of a checkpoint, and give the file of its key, made when it is first used; None without."""
    from swsearch.pipeline.checkpoint import checkpoint_folder

    if checkpoint is None:
        yield None
        return
    path = checkpoint_folder(checkpoint) / "server-job"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.seek(0)
            if not re.fullmatch("[0-9a-f]{32}", file.read(33)):
                file.truncate(0)
                file.write(uuid.uuid4().hex)
                file.flush()
            yield path
    except BlockingIOError:
        raise InputError(f"checkpoint: {checkpoint} is in use by another command; choose another folder") from None
    except UnicodeDecodeError:
        raise InputError(f"checkpoint: {path} is damaged; remove it") from None


def _end(job: ServerJob, key: Path | None) -> None:
    """Have the server remove a job, and forget its key."""
    job.forget_quietly()
    if key is not None:
        key.unlink(missing_ok=True)


def _download(
    job: ServerJob, formats: Sequence[str], paths: Sequence[str | None], read: Sequence[str | None],
    messages: MessageTable,
) -> None:  # fmt: skip
    """Wait for a job, and store its outputs, which appear together; the files of a folder follow."""
    from swsearch.output_files import open_outputs

    is_folder = "msa a3m" in formats  # it is the last
    files = list(zip(formats, paths, strict=True))[: -1 if is_folder else None]
    n_queries = job.stated.get("n_queries", 0)
    with SearchProgress(display_of(messages.progress, messages.quiet), job.stated.get("cells", 0), n_queries) as done:
        job.wait(progress=done.advance)
        with TemporaryFile() as archive, open_outputs([(path, True) for _, path in files]) as streams:
            for (outfmt, _), stream in zip(files, streams, strict=True):
                stream.writelines(job.download(outfmt))
            if is_folder:
                archive.writelines(job.download("msa a3m"))
                _unpack(archive, Path(str(paths[-1])), read)
        done.written(n_queries)


def _unpack(archive: IO[bytes], folder: Path, read: Sequence[str | None]) -> None:
    """Store the A3M files of a zip archive in a folder; each appears when it is complete."""
    from swsearch.output_files import check_spared, open_outputs
    from swsearch.report.saved import is_file_name, make_alignment_folder

    make_alignment_folder(folder, "--save-msa")
    try:
        with zipfile.ZipFile(archive) as opened:
            names = opened.namelist()
            if not all(is_file_name(name, ".a3m") for name in names):
                raise ServerError("save-msa: the server sent other files than alignments")
            check_spared([str(folder / name) for name in names], read)
            for name in names:
                with open_outputs([(str(folder / name), True)], sweep=False) as (file,), opened.open(name) as source:
                    shutil.copyfileobj(source, file)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ServerError(f"save-msa: the server sent a damaged archive ({error}); try again") from None
