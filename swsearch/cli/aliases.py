"""Names of BLAST's options that mean the same here: they are taken as ours, in BLAST's own spelling too.

``-max_target_seqs 5``, ``--max-target-seqs 5`` and ``--max_target_seqs=5`` are all ``--max-hits 5``. A name whose
meaning is another here is not taken: `swsearch.cli.foreign` says what to type instead. Options without an effect here
are taken with a note: `swsearch.cli.no_effect`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from swsearch.cli import foreign, no_effect
from swsearch.errors import InputError, OptionError
from swsearch.options.row import Option

FIRST_ARGUMENT, OTHER_ARGUMENTS, TASK = "QUERIES", "SUBJECTS", "--task"

_ARGUMENTS = {
    "query": FIRST_ARGUMENT,
    "in-pssm": f"{FIRST_ARGUMENT} --query-format=asn",
    "in-msa": f"{FIRST_ARGUMENT} --query-format=fasta-aligned",
    "db": OTHER_ARGUMENTS,
    "subject": OTHER_ARGUMENTS,
}

ARGUMENTS: dict[str, dict[str, str]] = {
    foreign.SEARCH: _ARGUMENTS,
    foreign.MSA: _ARGUMENTS,
    foreign.BUILD: {"in": OTHER_ARGUMENTS},
    foreign.APPEND: {"in": OTHER_ARGUMENTS},
}
"""By command: options of BLAST that are arguments here, and options that go with them."""

SEVERAL = ("db", "in")
"""Names whose value is a list of files with blanks between them."""

VALUES = {
    "task": {
        "blastp": "default",
        "blastp-short": "short",
        "blastx": "default",
        "tblastn": "default",
        "tblastx": "default",
    },
    "num-iterations": {"0": "1000"},
}
"""By name: values of BLAST's, and what they are here. With 0 iterations psiblast goes on until it converges."""


def aliases_of(path: str, rows: Mapping[str, Option]) -> dict[str, str]:
    """Return what each name of BLAST is in a command with these options."""
    return ARGUMENTS.get(path, {}) | {name: row.flag for row in rows.values() for name in row.blast.split()}


def translated(
    path: str, args: Sequence[str], own: Sequence[str], rows: Mapping[str, Option]
) -> tuple[list[str], list[str]]:
    """Return a command line with every alias as ours, queries first and databases last, and notes on `no_effect`.

    `own` are spellings of the command's options that take a value, whose values are left as they are.
    """
    known = aliases_of(path, rows)
    spelled = {foreign.plain(each): each for each in own if each.startswith("--")} if known else {}
    queries, first = list[str](), ""
    subjects: list[str] = []
    words: list[str] = []
    notes: list[str] = []
    rest = list(args)
    while rest and rest[0] != "--":
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name not in own and (note := no_effect.take(path, word, rest)):
            notes.append(note)
            continue
        ours, _, more = ("" if name in own and name != TASK else _ours(name, known, spelled)).partition(" ")
        if not equals and rest and (ours or name in own):
            value, equals = rest.pop(0), " "
        if ours in (FIRST_ARGUMENT, OTHER_ARGUMENTS) and not value:
            raise InputError(f"{path}: {name} needs a value, expected the name of a file")
        if ours == FIRST_ARGUMENT:
            if queries:
                twice = f"{name} is there twice" if name == first else f"got {first} and {name}"
                raise InputError(f"{path}: {twice}, expected one file of queries")
            queries, first = [_path(value), *more.split()], name
        elif ours == OTHER_ARGUMENTS:
            subjects += [_path(each) for each in (value.split() if foreign.plain(name) in SEVERAL else [value])]
        elif ours:
            words += [f"{ours}={_value(name, value)}" if equals else ours]
        else:
            words += [name, value] if equals == " " else [word]
    return [*queries, *words, *subjects, *rest], notes


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


def _value(name: str, value: str) -> str:
    """Return what a value of BLAST's is here."""
    plain = foreign.plain(name)
    if plain == "task" and value in ("blastp-fast", "blastx-fast", "tblastn-fast"):
        raise OptionError(
            TASK, value, "default or short", f"no words are looked for, which {value} has longer ones of"
        )
    return VALUES.get(plain, {}).get(value, value)
