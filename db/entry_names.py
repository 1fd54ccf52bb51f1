"""Names of an entry: identifier, accessions, and fields of the identifier.

Only this module knows the rules. `swsearch.db.name_lookup` shares the tables of tags and prefixes, and asks it once
for all identifiers of one form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

ACCESSION_TAGS = ("gb", "emb", "dbj", "pir", "sp", "tr", "ref", "prf", "tpg", "tpe", "tpd", "gpp", "nat")
"""Tags of NCBI's table of FASTA identifiers before an accession and a name or a locus."""

SINGLE_TAGS = ("lcl", "gi")
"""Tags before one field: the identifier itself."""

PAIRED_TAGS = {"pdb": "_", "gnl": ":"}
"""Tags before two fields that make one name, and the letter that blastp writes between the fields."""

TAGS = (*ACCESSION_TAGS, *SINGLE_TAGS, *PAIRED_TAGS)

VERSIONED = (
    r"[A-Z]{1,8}[0-9]{5,12}"  # GenBank, EMBL, DDBJ, Ensembl
    r"|[A-Z]{2}_[A-Z]{0,6}[0-9]{5,12}"  # RefSeq
    r"|[OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9](?:[A-Z][A-Z0-9]{2}[0-9]){1,2}"  # UniProt
)
"""Accessions that may have a version without a tag before them."""

EXACT_NAME, ALIAS_NAME, MAIN_NAME, STEM_NAME = range(4)
"""Kinds of names: identifiers, other names, those that identify the sequence, and accessions without a version."""

_VERSION = re.compile(r"\.[0-9]{1,3}\Z")
_PLAIN = re.compile(rf"({VERSIONED})\.[0-9]{{1,3}}")
_UNIREF = re.compile(r"UniRef(?:50|90|100)_(.+)")
_CHAIN = re.compile(r"([0-9][A-Za-z0-9]{3})_[A-Za-z0-9]{1,4}")


class Names(NamedTuple):
    """Names in an identifier."""

    accession: str
    """Without its version; the identifier itself where it has no accession."""
    versioned: str
    """The accession with its version, where it has one."""
    others: tuple[str, ...]
    """All names except the identifier itself, each once."""


def names_of(identifier: str) -> Names:
    """Return the names in one identifier, the first word of a header, such as ``sp|Q28933|IGF1_SUNMU``."""
    if "|" not in identifier:
        plain = _PLAIN.fullmatch(identifier)
        found = plain or _UNIREF.fullmatch(identifier) or _CHAIN.fullmatch(identifier)
        return Names(plain[1] if plain else identifier, identifier, (found[1],) if found else ())
    versioned, joined = "", ""
    fields, others = identifier.split("|"), list[str]()
    for tag, first, last, kind in names_among(fields):
        name = "|".join(fields[first : last + 1])
        others.append(_VERSION.sub("", name) if kind == STEM_NAME else name)
        if last > first:
            others.append(f"{fields[first]}{PAIRED_TAGS[tag]}{fields[last]}")
        if kind == MAIN_NAME and tag in ACCESSION_TAGS:
            versioned = versioned or name
        elif last > first or tag == "lcl":
            joined = joined or others[-1]
    accession = _VERSION.sub("", versioned) or joined or identifier
    return Names(accession, versioned or joined or identifier, tuple(filter(None, dict.fromkeys(others))))


def names_among(fields: Sequence[str]) -> Iterator[tuple[str, int, int, int]]:
    """Yield tag, first and last field, and kind of each name among the fields of an identifier.

    Only tags, and which fields are empty, decide.
    """
    at, padded = 0, [*fields, "", ""]
    while at < len(fields) and (tag := padded[at]) in TAGS:
        first, second = padded[at + 1 : at + 3]
        if tag in PAIRED_TAGS:
            if first and second:
                yield tag, at + 1, at + 2, MAIN_NAME
                alias = at + 2 if tag == "gnl" else at + 1
                yield tag, alias, alias, ALIAS_NAME
        elif first:
            yield tag, at + 1, at + 1, MAIN_NAME
        if tag in ACCESSION_TAGS and first:
            yield tag, at + 1, at + 1, STEM_NAME
        if tag in ACCESSION_TAGS and second:
            yield tag, at + 2, at + 2, ALIAS_NAME if first else MAIN_NAME
        at += 2 if tag in SINGLE_TAGS else 3
