"""Names of blastp's options that mean the same here: they are taken as ours, in blastp's own spelling too.

``-max_target_seqs 5``, ``--max-target-seqs 5`` and ``--max_target_seqs=5`` are all ``--max-hits 5``. A name whose
meaning is another here is not taken: `swsearch.cli.foreign` says what to type instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from swsearch.cli import foreign
from swsearch.errors import InputError, OptionError

FIRST_ARGUMENT, OTHER_ARGUMENTS, TASK = "QUERIES", "SUBJECTS", "--task"

ALIASES: dict[str, dict[str, str]] = {
    foreign.SEARCH: {
        "query": FIRST_ARGUMENT,
        "db": OTHER_ARGUMENTS,
        "subject": OTHER_ARGUMENTS,
        "evalue": "--evalue",
        "max-target-seqs": "--max-hits",
        "max-hsps": "--max-alignments",
        "num-threads": "--threads",
        "out": "--output",
        "outfmt": "--outfmt",
        "matrix": "--matrix",
        "gapopen": "--gap-open",
        "gapextend": "--gap-extend",
        "dbsize": "--dbsize",
        "qcov-hsp-perc": "--min-query-coverage",
        "seqidlist": "--include-ids",
        "negative-seqidlist": "--exclude-ids",
        "taxids": "--taxids",
        "taxidlist": "--taxids",
        "negative-taxids": "--exclude-taxids",
        "negative-taxidlist": "--exclude-taxids",
        "query-loc": "--query-loc",
        "query-gencode": "--genetic-code",
        "strand": "--strand",
        "task": TASK,
    },
}
"""By command: a name of blastp's without dashes before it, as `foreign.plain` writes it, and what it is here."""

TASKS = {
    "blastp": "default",
    "blastp-short": "short",
    "blastx": "default",
    "tblastn": "default",
    "tblastx": "default",
}
"""What tasks of blastp's are called here."""


def translated(path: str, args: Sequence[str], own: Sequence[str]) -> list[str]:
    """Return the words of a command line with every alias as ours.

    Parameters
    ----------
    path : str
        The command, such as ``swsearch search``.
    args : sequence of str
        The words after it.
    own : sequence of str
        Spellings of the command's options that take a value, whose values are left as they are.

    Returns
    -------
    list of str
        With queries before all other words, and with databases after those words that are no options.

    Raises
    ------
    InputError
        If an alias has no value, queries are there twice, or a task is none of ours.
    """
    known = ALIASES.get(path)
    if known is None:
        return list(args)
    spelled = {foreign.plain(each): each for each in own if each.startswith("--")}
    queries: list[str] = []
    subjects: list[str] = []
    words: list[str] = []
    rest = list(args)
    while rest and rest[0] != "--":
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        ours = "" if name in own and name != TASK else _ours(name, known, spelled)
        if not equals and rest and (ours or name in own):
            value, equals = rest.pop(0), " "
        if ours in (FIRST_ARGUMENT, OTHER_ARGUMENTS) and not value:
            raise InputError(f"{path}: {name} needs a value, expected the name of a file")
        if ours == FIRST_ARGUMENT:
            if queries:
                raise InputError(f"{path}: {name} is there twice, expected one file of queries")
            queries = [_path(value)]
        elif ours == OTHER_ARGUMENTS:
            subjects += [_path(each) for each in (value.split() if foreign.plain(name) == "db" else [value])]
        elif ours:
            words += [f"{ours}={_task(value) if ours == TASK else value}" if equals else ours]
        else:
            words += [name, value] if equals == " " else [word]
    return [*queries, *words, *subjects, *rest]


def _ours(name: str, known: dict[str, str], spelled: dict[str, str]) -> str:
    """Return what a word is here; empty if it is no alias, such as a cluster of letters."""
    if name[:1] != "-" or len(name) < 3 or name != name.lower():
        return ""
    plain = foreign.plain(name)
    if name[:2] != "--":
        return known.get(plain, "")
    return known.get(plain) or spelled.get(plain, "")


def _path(value: str) -> str:
    """Return a file's name so that it is not taken for an option."""
    return f"./{value}" if value[:1] == "-" and value != "-" else value


def _task(value: str) -> str:
    if value in ("blastp-fast", "blastx-fast", "tblastn-fast"):
        raise OptionError(
            TASK, value, "default or short", f"no words are looked for, which {value} has longer ones of"
        )
    return TASKS.get(value, value)
