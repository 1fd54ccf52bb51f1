"""The words of BLAST's URL API: every parameter that is known, what becomes of it, and the search that is asked for.

What is not supported is refused with a sentence that says what to send instead; what steers blastp's heuristic or
another server's pages is taken, and has no effect. A word that is not known at all is refused: it may be a mistyped
one, and would be lost without a sign.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from swsearch.alphabet import PROTEIN
from swsearch.errors import InputError, OptionError, printable, shown
from swsearch.options.kinds import MAX_POSITION
from swsearch.pipeline.description import PROGRAM_NAMES
from swsearch.remote.wire import LONGEST_TITLE, SERVER_ROWS, SearchRequest
from swsearch.scoring import usable_matrices
from swsearch.server.problems import ServerProblem

BlastCommand = Literal["Put", "Get", "Delete"]

BLAST_COMMANDS: tuple[BlastCommand, ...] = ("Put", "Get", "Delete")

SAYS_NO = ("f", "false", "no", "none", "off", "0")
"""What says that something is not wanted, in lower case."""

NOTHING = ("(none)", *SAYS_NO)
"""Values of parameters that are refused which ask for nothing, and are taken."""

SAYS_YES = ("t", "true", "yes", "on", "1")


LONGEST_NAME_COMPARED = 40
"""Letters of an unknown parameter that are compared with those that are known."""


@dataclass(frozen=True)
class BlastWord:
    """A parameter of BLAST's URL API.

    Parameters
    ----------
    name : str
        In upper case, as NCBI writes it; requests may write it in any.
    commands : tuple of str
        Those of `BLAST_COMMANDS` that it goes with; others may carry it all the same.
    effect : {"used", "none", "refused"}
        What becomes of it.
    meaning : str
        What it does here, why it does nothing, or what to do instead.
    allowed : tuple of str
        Of one that is refused: values in lower case that ask for nothing, and are taken.
    """

    name: str
    commands: tuple[BlastCommand, ...]
    effect: Literal["used", "none", "refused"]
    meaning: str
    allowed: tuple[str, ...] = ()


def _words(
    effect: Literal["used", "none", "refused"],
    commands: tuple[BlastCommand, ...],
    meanings: Mapping[str, str],
    allowed: tuple[str, ...] = (),
) -> Iterable[BlastWord]:
    return [
        BlastWord(name, commands, effect, meaning, allowed)
        for names, meaning in meanings.items()
        for name in names.split()
    ]


_USED_BY_PUT = {
    "QUERY": "proteins, or DNA for blastx, as FASTA, or the letters of one; also as an uploaded file",
    "DATABASE": "the name of one database of this server",
    "PROGRAM": "blastp, or blastx for DNA queries; of a DNA database tblastn, or tblastx for DNA queries",
    "GENETIC_CODE": "for blastx and tblastx, the genetic code of the queries by NCBI's number; 1 by default",
    "EXPECT": "largest E-value of a hit; 10 by default",
    "HITLIST_SIZE": "most hits of a query; 500 by default",
    "MATRIX MATRIX_NAME": "name of a matrix that this server knows; BLOSUM62 by default",
    "GAPCOSTS": "existence and extension, such as `11 1`; by default those of the matrix",
    "FILTER": "F or none: queries are not masked. SEG (L, T and their kin) is not there",
    "LCASE_MASK": "yes: lower case letters of the queries are scored as X",
    "COMPOSITION_BASED_STATISTICS": (
        "0, F or none: BLAST's published statistics, without composition. Left out: those of this server, which know "
        "the composition of query and subject; scores are the same. 1, 2 and 3 are not there"
    ),
    "QUERY_FROM QUERY_TO": "first and last residue of the queries that are searched, counted from 1",
    "JOB_TITLE": "what the job is called in this server's lists",
}

_USED_BY_GET = {
    "FORMAT_TYPE": "the report, see below; checked with Put too, and to be given with Get",
    "FORMAT_OBJECT": "SearchInfo asks for the state; Alignment, the default, for the report",
    "ALIGNMENT_VIEW": "Pairwise or Tabular, for FORMAT_TYPE Text and HTML",
}

_HEURISTIC = "no words are looked for: every subject is scored"
_NUCLEOTIDES = "concerns nucleotides"
_PAGES = "concerns NCBI's own pages"
_NO_GI = "there are no GIs"
_ALL_HITS = "every report has all hits; HITLIST_SIZE of the search says how many"

_NO_EFFECT = {
    "WORD_SIZE THRESHOLD": _HEURISTIC,
    "NUCL_REWARD NUCL_PENALTY TEMPLATE_TYPE TEMPLATE_LENGTH": _NUCLEOTIDES,
    "DB_GENETIC_CODE": "a DNA database has its own",
    "EMAIL TOOL": "nobody is written to",
    "AUTO_FORMAT CLIENT ENDPOINTS LAYOUT PAGE PAGE_TYPE QUERY_BELIEVE_DEFLINE USER_TYPE VIEWREPORT "
    "NO_DATABASE_OVERRIDE": _PAGES,
}

_NO_EFFECT_ON_REPORTS = {
    "ALIGNMENTS DESCRIPTIONS": _ALL_HITS,
    "NCBI_GI": _NO_GI,
    "ENTREZ_LINKS_NEW_WINDOW RESULTS_FILE SHOW_OVERVIEW": _PAGES,
}

_LIST_IDENTIFIERS = "there is no Entrez; the HTTP API's include_ids lists identifiers, and its taxids taxa"

_REFUSED_BY_PUT = {
    "MEGABLAST": "this is a program for nucleotides",
    "SHORT_QUERY_ADJUST": "say what it would change: MATRIX=PAM30, GAPCOSTS=9 1, EXPECT=20000",
    "UNGAPPED_ALIGNMENT": "gaps that cost much come close: GAPCOSTS=1000 1000",
    "ENTREZ_QUERY EQ_TEXT": _LIST_IDENTIFIERS,
    "QUERY_FILE": "send its content as QUERY",
    "OTHER_ADVANCED": "give the parameters themselves",
    "SEARCHSP_EFF": "the HTTP API's dbsize does most of it",
    "PERC_IDENT": "the HTTP API's min_identity does it",
    "PHI_PATTERN PSSM I_THRESH": "there is no PSI-BLAST and no PHI-BLAST; the HTTP API has iterations",
}

_REFUSED_BY_GET = {
    "EXPECT_LOW EXPECT_HIGH FORMAT_ENTREZ_QUERY FORMAT_EQ_TEXT": "filter the report, or search with another EXPECT",
}

WORDS: Mapping[str, BlastWord] = {
    word.name: word
    for words in (
        [BlastWord("CMD", BLAST_COMMANDS, "used", "Put, Get or Delete")],
        _words("used", ("Put",), _USED_BY_PUT),
        [BlastWord("RID", ("Get", "Delete"), "used", "the search, as the answer to Put named it")],
        _words("used", ("Get",), _USED_BY_GET),
        [
            BlastWord(
                "SERVICE", ("Put", "Get"), "refused", "there is no PSI-BLAST, PHI-BLAST or RPS-BLAST here", ("plain",)
            )
        ],
        _words("none", ("Put",), _NO_EFFECT),
        _words("none", ("Get",), _NO_EFFECT_ON_REPORTS),
        _words("refused", ("Put",), _REFUSED_BY_PUT, NOTHING),
        _words("refused", ("Get",), _REFUSED_BY_GET, NOTHING),
    )
    for word in words
}
"""Every parameter that is known, by its name."""

_OPTIONS = {
    "queries": "QUERY",
    "database": "DATABASE",
    **{name: row.url for name, row in SERVER_ROWS.items() if row.url},
}
"""What options of a search are called here."""


def words_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return parameters by their names in upper case, without those that say nothing, checked for what is refused.

    Raises
    ------
    InputError
        If one is unknown, is refused, or is there twice with different values.
    """
    found: dict[str, str] = {}
    for given, text in pairs:
        name, value = given.strip().upper(), text.strip()
        if not value:
            continue
        if found.setdefault(name, value) != value:
            raise InputError(f"{name}: got {shown(found[name])} and {shown(value)}, expected one of them")
    for name, value in found.items():
        word = WORDS.get(name)
        if word is None:
            close = difflib.get_close_matches(name[:LONGEST_NAME_COMPARED], WORDS, n=1)
            remedy = f"; did you mean {close[0]}?" if close else ""
            raise InputError(f"got the parameter {shown(name)}, which is not known here{remedy}")
        if word.effect == "refused" and value.lower() not in word.allowed:
            raise InputError(f"{name}: got {shown(value)}, which is not supported: {word.meaning}")
    return found


def command_of(words: Mapping[str, str]) -> BlastCommand:
    """Return what is asked for.

    Raises
    ------
    OptionError
        If it is nothing that is known here.
    """
    given = words.get("CMD", "")
    for command in BLAST_COMMANDS:
        if given.lower() == command.lower():
            return command
    raise OptionError("CMD", given, f"one of {', '.join(BLAST_COMMANDS)}")


def notes_on(words: Mapping[str, str]) -> list[str]:
    """Return sentences on what was asked for and has no effect, and on what the statistics are."""
    notes = [f"{name} has no effect: {WORDS[name].meaning}" for name in words if WORDS[name].effect == "none"]
    if "GENETIC_CODE" in words and (program := words.get("PROGRAM", "").lower()) in ("blastp", "tblastn"):
        notes.append(f"GENETIC_CODE has no effect: queries of {program} are proteins")
    if "COMPOSITION_BASED_STATISTICS" not in words:
        notes.append(
            "E-values are this server's, which know the composition of query and subject; "
            "COMPOSITION_BASED_STATISTICS of 0 gives BLAST's without composition"
        )
    return notes


def request_of(words: Mapping[str, str], databases: Sequence[str], dna: Collection[str] = ()) -> SearchRequest:
    """Return the search that the words of a Put ask for.

    Parameters
    ----------
    words : dict of str to str
        Of `words_of`.
    databases : sequence of str
        Names of those that there are.
    dna : collection of str, optional
        Names of those that hold DNA.

    Raises
    ------
    InputError
        If it cannot be done as asked.
    """
    for name in ("PROGRAM", "DATABASE", "QUERY"):
        if name not in words:
            raise InputError(f"{name}: got none, expected {WORDS[name].meaning}")
    _check_database(words["DATABASE"], databases)
    options = _program(words, words["DATABASE"] in dna)
    if "EXPECT" in words:
        options["evalue"] = _real("EXPECT", words["EXPECT"])
    if "HITLIST_SIZE" in words:
        options["max_hits"] = _whole("HITLIST_SIZE", words["HITLIST_SIZE"])
    options |= _scoring(words) | _masking(words) | _statistics(words) | _part(words)
    title = printable(words.get("JOB_TITLE", ""), " ")[:LONGEST_TITLE]
    request = SearchRequest(
        words["DATABASE"], _queries(words["QUERY"]), "fasta", options, title, {"command": "BLAST's URL API"}
    )
    _ = request.search_options  # checked when it is made
    return request


def sentence_of(problem: ServerProblem) -> str:
    """Return what is wrong, with an option of a search by the name of BLAST's parameter."""
    message = str(problem)
    known = _OPTIONS.get(problem.option)
    return known + message.removeprefix(problem.option) if known and message.startswith(problem.option) else message


def _check_database(name: str, databases: Sequence[str]) -> None:
    if name in databases:
        return
    several = "; one at a time" if len(name.split()) > 1 else ""
    raise OptionError("DATABASE", name, f"one of {', '.join(databases)}{several}")


def _program(words: Mapping[str, str], is_dna: bool) -> dict[str, Any]:
    """Return whether queries are DNA, and by which code they are translated."""
    program, plain, translated = words["PROGRAM"].lower(), PROGRAM_NAMES[False, is_dna], PROGRAM_NAMES[True, is_dna]
    if program not in (plain, translated):
        holds = f"{words['DATABASE']} holds {'DNA' if is_dna else 'proteins'}"
        raise OptionError("PROGRAM", words["PROGRAM"], f"{plain}, or {translated} for DNA queries: {holds}")
    if program == plain:
        return {}
    code = {"genetic_code": _whole("GENETIC_CODE", words["GENETIC_CODE"])} if "GENETIC_CODE" in words else {}
    return {"translate": True, **code}


def _scoring(words: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    named = {name: words[name] for name in ("MATRIX", "MATRIX_NAME") if name in words}
    if len({value.upper() for value in named.values()}) > 1:
        raise InputError(f"got MATRIX {shown(words['MATRIX'])} and MATRIX_NAME {shown(words['MATRIX_NAME'])}, "
                         "expected one of them")  # fmt: skip
    for name, value in named.items():
        known = usable_matrices(PROTEIN)
        found["matrix"] = next((each for each in known if each.upper() == value.upper()), "")
        if not found["matrix"]:
            raise OptionError(name, value, f"one of {', '.join(known)}")
    if "GAPCOSTS" in words:
        costs = re.fullmatch(r"(\d{1,9})(?:\s*,\s*|\s+)(\d{1,9})", words["GAPCOSTS"], re.ASCII)
        if costs is None:
            raise OptionError("GAPCOSTS", words["GAPCOSTS"], "existence and extension, such as 11 1")
        found |= {"gap_open": int(costs[1]), "gap_extend": int(costs[2])}
    return found


def _part(words: Mapping[str, str]) -> dict[str, Any]:
    ends = {name: _whole(name, words[name]) for name in ("QUERY_FROM", "QUERY_TO") if name in words}
    if not ends:
        return {}
    first, last = ends.get("QUERY_FROM", 1), ends.get("QUERY_TO", MAX_POSITION)
    if not first <= last <= MAX_POSITION:
        raise OptionError("QUERY_TO", str(last), f"a place from QUERY_FROM, {first:,}, to {MAX_POSITION:,}")
    return {"query_loc": f"{first}-{last}"}


def _masking(words: Mapping[str, str]) -> dict[str, Any]:
    filtering = words.get("FILTER", "F")
    if filtering.lower() not in SAYS_NO:
        raise OptionError(
            "FILTER", filtering, "F: there is no SEG here",
            "mask queries beforehand as lower case, such as by segmasker, and give LCASE_MASK yes",
        )  # fmt: skip
    return {"query_mask": "lower"} if _flag("LCASE_MASK", words.get("LCASE_MASK", "no")) else {}


def _statistics(words: Mapping[str, str]) -> dict[str, Any]:
    given = words.get("COMPOSITION_BASED_STATISTICS")
    if given is None:
        return {}
    if given.lower() not in SAYS_NO:
        raise OptionError(
            "COMPOSITION_BASED_STATISTICS", given, "0: BLAST's adjustments of scores are not there",
            "or leave it out for E-values that know the composition of query and subject",
        )  # fmt: skip
    return {"statistics": "published"}


_BARE = re.compile(r"[A-Za-z*\-\s]+")
"""Letters of one sequence; what else they may not be is said where sequences are read."""


def _queries(text: str) -> bytes:
    """Return queries as FASTA."""
    if text.startswith(">"):
        return text.encode("utf-8", errors="replace")
    if _BARE.fullmatch(text):
        return f">query_1\n{text}\n".encode("ascii")
    if re.fullmatch(r"[\w.|:\-]+(?:\s+[\w.|:\-]+)*", text, re.ASCII):
        raise OptionError(
            "QUERY",
            text,
            "proteins as FASTA, or the letters of one",
            "nothing is looked up by identifiers here",
        )
    raise OptionError("QUERY", text, "proteins as FASTA, whose first line begins with >, or the letters of one")


def _flag(name: str, text: str) -> bool:
    if text.lower() in SAYS_YES:
        return True
    if text.lower() in SAYS_NO:
        return False
    raise OptionError(name, text, "yes or no")


def _real(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise OptionError(name, text, "a number > 0")
    return value


def _whole(name: str, text: str) -> int:
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII) or int(text) < 1:
        raise OptionError(name, text, "a whole number >= 1")
    return int(text)
