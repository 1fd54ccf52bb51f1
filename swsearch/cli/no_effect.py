"""Options of other programs that ask for what swsearch does anyway: a command takes them, with a note."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from swsearch.cli import foreign
from swsearch.errors import SHOWN, InputError, OptionError
from swsearch.options.numbers import parse_decimal

FLAG, NUMBER, ANY_VALUE = "", "a number", "a value"


class NoEffect(NamedTuple):
    """Options that change nothing, the reason, and the values for which this is true."""

    names: str
    reason: str
    values: str = FLAG
    """`FLAG`, `NUMBER`, `ANY_VALUE`, or the accepted words, the usual one first."""
    otherwise: str = ""
    """What to use for another value."""


_SEARCH = (
    NoEffect("word-size threshold window-size", "swsearch uses no words", NUMBER),
    NoEffect("xdrop-ungap xdrop-gap xdrop-gap-final gap-trigger", "swsearch extends no seeds", NUMBER),
    NoEffect("use-sw-tback", "every alignment of swsearch is exact"),
    NoEffect(
        "comp-based-stats comp-bias-corr",
        "swsearch never adjusts scores; --statistics published has the E-values of BLAST",
        "0 f",
        foreign.COMPOSITION_ADVICE,
    ),
    NoEffect("seg", "swsearch masks nothing by default", "no", foreign.MASK_ADVICE),
    NoEffect("masking mask", "swsearch masks nothing by default", "0 none", foreign.MASK_ADVICE),
    NoEffect(
        "soft-masking",
        "swsearch has no soft masks",
        "false f no n 0",
        "leave it out, because swsearch without masks gives the scores of a soft mask",
    ),
    NoEffect("db-soft-mask", "a soft mask only limits seeds, and swsearch uses none", ANY_VALUE),
    NoEffect(
        "sum-stats",
        "swsearch has no sum statistics",
        "false f no n 0",
        "--max-alignments N reports several alignments of a subject, each with its own E-value",
    ),
    NoEffect(
        "max-intron-length",
        "swsearch links no alignments",
        "0",
        "--max-alignments N reports several alignments of a subject, such as exons, each with its own E-value",
    ),
    NoEffect("subject-besthit", "swsearch reports the best alignment of a subject by default"),
    NoEffect("show-gis", "swsearch knows no GIs"),
    NoEffect("parse-deflines", "swsearch finds the accession in every header"),
    NoEffect("mt-mode", "swsearch divides the subjects among the threads", NUMBER),
    NoEffect("save-pssm-after-last-round", "--save-profile saves the profile after the last iteration"),
    NoEffect(
        "msa-master-idx",
        "the first sequence of an alignment is the query",
        "1",
        "move the query to the first place of the alignment",
    ),
    NoEffect(
        "pseudocount",
        "swsearch computes the weight of pseudo-counts from the alignment",
        "0",
        "swsearch computes the weight of pseudo-counts from the alignment, as 0 does in psiblast",
    ),
    NoEffect("f1 f2 f3", "swsearch scores every subject, without filters", NUMBER),
    NoEffect("nobias swipe exhaustive exhaustive-search", "swsearch scores every subject, without filters"),
    NoEffect("seed", "results of swsearch do not depend on a random seed", NUMBER),
    NoEffect("index-chunks block-size", "swsearch builds no index of seeds", NUMBER),
)

NO_EFFECT: dict[str, tuple[NoEffect, ...]] = {
    foreign.SEARCH: _SEARCH,
    foreign.MSA: _SEARCH,
    foreign.BUILD: (
        NoEffect(
            "dbtype",
            "a database holds proteins, or DNA with --translate",
            "prot 0 1",
            "for DNA use --translate, and queries find proteins in it as with tblastn",
        ),
        NoEffect("parse-seqids", "swsearch always finds entries by identifier, accession and name"),
        NoEffect("hash-index", "swsearch always writes checksums"),
        NoEffect("input-type", "swsearch reads FASTA", "fasta", "convert the input to FASTA"),
        NoEffect("blastdb-version", "a database of swsearch has one format", NUMBER),
    ),
    foreign.FETCH: (
        NoEffect("dbtype", "a database of swsearch knows what it holds", ANY_VALUE),
        NoEffect("target-only get-dups ctrl-a long-seqids", "swsearch writes entries as the input had them"),
        NoEffect("outfmt", "swsearch writes FASTA", "%f", "swsearch db fetch writes FASTA only"),
    ),
}
"""By command; names are without dashes, as `foreign.plain` writes them."""


@cache
def by_name(path: str) -> dict[str, NoEffect]:
    """Return the options without effect of a command, by name."""
    return {name: each for each in NO_EFFECT.get(path, ()) for name in each.names.split()}


def take(path: str, word: str, rest: list[str]) -> str:
    """Return a note on an option without effect, and remove its value from `rest`; empty if it is another option."""
    name, equals, value = word.partition("=")
    one = by_name(path).get(foreign.plain(name)) if name[:1] == "-" else None
    if one is None:
        return ""
    if one.values == FLAG:
        if equals:
            raise InputError(f"{path}: {name} takes no value, got {value[:SHOWN]!r}")
        return f"{name} has no effect: {one.reason}"
    if not equals and rest and rest[0] != "--":
        value = rest.pop(0)
    expected = one.values if one.values in (NUMBER, ANY_VALUE) else one.values.split()[0]
    if not value:
        raise InputError(f"{path}: {name} needs a value, expected {expected}")
    if not _asks_for_nothing(one.values, value):
        raise OptionError(name, value, expected, one.otherwise)
    return f"{name} {value[:SHOWN]} has no effect: {one.reason}"


def _asks_for_nothing(values: str, value: str) -> bool:
    if values == NUMBER:
        return parse_decimal(value) is not None
    return values == ANY_VALUE or value.lower() in values.split()
