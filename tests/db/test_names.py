"""The names of an identifier, and what finds which entry of a database."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from support.samples import sample
from swsearch.db import Database
from swsearch.db.fasta import split_header
from swsearch.db.name_lookup import TAGS, names_of
from swsearch.errors import OptionError

NAMES = {
    "sp|Q28933|IGF1_SUNMU": ("Q28933", "Q28933", {"Q28933", "IGF1_SUNMU"}),
    "sp|P11112-2|AAB_HUMAN": ("P11112-2", "P11112-2", {"P11112-2", "AAB_HUMAN"}),
    "tr|A0A0A0|A0A0A0_HUMAN": ("A0A0A0", "A0A0A0", {"A0A0A0", "A0A0A0_HUMAN"}),
    "ref|NP_000001.1|": ("NP_000001", "NP_000001.1", {"NP_000001.1", "NP_000001"}),
    "gb|AAA12346.1|LOCUS": ("AAA12346", "AAA12346.1", {"AAA12346.1", "AAA12346", "LOCUS"}),
    "emb|CAA12345.22|": ("CAA12345", "CAA12345.22", {"CAA12345.22", "CAA12345"}),
    "dbj|BAA12345|": ("BAA12345", "BAA12345", {"BAA12345"}),
    "pir||S22345": ("S22345", "S22345", {"S22345"}),
    "gi|12345|ref|NP_000003.1|": ("NP_000003", "NP_000003.1", {"12345", "NP_000003.1", "NP_000003"}),
    "pdb|1ABC|A": ("1ABC_A", "1ABC_A", {"1ABC_A", "1ABC|A", "1ABC"}),
    "gnl|mine|contig7": ("mine:contig7", "mine:contig7", {"mine:contig7", "mine|contig7", "contig7"}),
    "lcl|local7": ("local7", "local7", {"local7"}),
    "UniRef100_P12345": ("UniRef100_P12345", "UniRef100_P12345", {"P12345"}),
    "NP_000001.1": ("NP_000001", "NP_000001.1", {"NP_000001"}),
    "Q9XYZ1.12": ("Q9XYZ1", "Q9XYZ1.12", {"Q9XYZ1"}),
    "A0A0A0ABC1.1": ("A0A0A0ABC1", "A0A0A0ABC1.1", {"A0A0A0ABC1"}),
    "ENSP00000354587.3": ("ENSP00000354587", "ENSP00000354587.3", {"ENSP00000354587"}),
    "1ABE_A": ("1ABE_A", "1ABE_A", {"1ABE"}),
    # models of a gene and contigs are no versions of each other; of other tables nothing is known
    "AT1G01010.1": ("AT1G01010.1", "AT1G01010.1", set()),
    "contig.1": ("contig.1", "contig.1", set()),
    "NP_000001.1234": ("NP_000001.1234", "NP_000001.1234", set()),
    "jgi|Aspnid1|8341": ("jgi|Aspnid1|8341", "jgi|Aspnid1|8341", set()),
    "sp|": ("sp|", "sp|", set()),
    "|": ("|", "|", set()),
}


@pytest.mark.parametrize("identifier", NAMES)
def test_names_of_an_identifier(identifier: str) -> None:
    found = names_of(identifier)
    assert (found.accession, found.versioned, set(found.others)) == NAMES[identifier]


def headers(seed: int, n: int) -> list[str]:
    """Draw headers that are nearly made as NCBI makes them."""
    draw = random.Random(seed)
    tags = [*TAGS, "xx", ""]

    def word(letters: str, most: int) -> str:
        return "".join(draw.choice(letters) for _ in range(draw.randrange(most)))

    kinds = [
        lambda: "|".join(draw.choice(tags) if draw.random() < 0.5 else word("AQP019._", 8) for _ in range(6)),
        lambda: word("ABOPQXZ0123456789", 13) + draw.choice([".1", ".12", "", "|"]),
        lambda: "A" * draw.randrange(10) + draw.choice(["", "_", "A_"]) + word("B", 9) + word("19", 15) + ".1",
        lambda: draw.choice([" ", "\t", ""]) + word("ABOPQ019.|_spgbrefU \u00e9", 14),
        lambda: word("AB|", 200) + " text | more\x01" + draw.choice(["sp|Q12345|X_Y y", " ", "\x01ref|NP_1.2| z"]),
    ]
    drawn = [draw.choice(kinds)() for _ in range(n)]
    return [each for each in drawn if split_header(each.encode())[0]]


def check_found(drawn: list[str]) -> None:
    """Compare what words and fields find with the names of each header but joined ones, which `FOUND` has."""
    exact, others, fields = defaultdict(list), defaultdict(set), set()
    for ordinal, header in enumerate(drawn):
        words = [split_header(part.encode())[0].decode() for part in header.split("\x01")]
        exact[words[0]].append(ordinal)
        for word in filter(None, words):
            names = names_of(word).others
            for name in {word, *names} - {
                name.replace("|", sign, 1) for name in names for sign in "_:" if "|" in name
            }:
                others[name].add(ordinal)
        fields |= {words[0], *(part for word in words for part in (*word.split("|"), word[:4], word[9:], word[10:]))}
    asked = sorted(each for each in fields if each[4:5] != "_" and ("|" not in each or each in exact))
    with Database.from_records([(header, "MKV") for header in drawn]) as database:
        found = database.find_many(asked)
        expected = {name: exact.get(name) or sorted(others.get(name, ())) for name in asked}
        assert dict(zip(asked, found, strict=True)) == expected
        assert [database.find(name) for name in asked[::7]] == found[::7]


@pytest.mark.parametrize("seed", sample(range(12), lambda seed: seed < 2))
def test_headers_are_found_by_their_names(seed: int) -> None:
    check_found(headers(seed, 400) if seed else list(NAMES))


FASTA = [
    "sp|Q28933|IGF1_SUNMU Insulin-like",
    "ref|NP_000001.1| one",
    "ref|NP_000001.2| two",
    "NP_000007.3 merged\x01XP_000008.1 other",
    "pdb|1ABC|A chain",
    "pdb|1ABC|B chain",
    "Q28933 another of this name",
    "gnl|mine|7 local",
    "UniRef90_P99999 cluster",
    "2XYZ_A plain",
]

FOUND = {
    "Q28933": [6],  # an identifier goes before other names
    "IGF1_SUNMU": [0],
    "sp|Q28933|IGF1_SUNMU": [0],
    "sp|Q28933|AN_OLD_NAME": [0, 6],
    "NP_000001": [1, 2],
    "NP_000001.1": [1],
    "NP_000001.3": [],
    "ref|NP_000001.2": [2],
    "ref|NP_000001.2|": [2],
    "ref|NP_000007.3|": [3],
    "XP_000008": [3],
    "XP_000008.1": [3],
    "1ABC": [4, 5],
    "1ABC_B": [5],
    "1ABC|B": [5],
    "pdb|2XYZ|A": [9],
    "mine:7": [7],
    "7": [7],
    "P99999": [8],
    "q28933": [],
    "Q2893": [],
    "": [],
    "|": [],
    "a\nb": [],
    "\udc80": [],
    "Q28933 another": [],
}


@pytest.fixture(scope="module")
def database() -> Database:
    return Database.from_records([(header, "MKV") for header in FASTA])


def test_entries_are_found_by_their_names(database: Database) -> None:
    assert dict(zip(FOUND, database.find_many(FOUND), strict=True)) == FOUND
    assert {name: database.find(name) for name in FOUND} == FOUND  # by an index
    asked, subjects = database.find_many_as_arrays(["Q28933", "nothing", "NP_000001", "Q28933"])
    assert (asked.tolist(), subjects.tolist()) == ([0, 2, 2, 3], [6, 1, 2, 6])
    assert database.find_many([]) == []
    for wrong in (["a", 1], "text", 5):
        with pytest.raises(OptionError):
            database.find_many(wrong)  # type: ignore[arg-type]
