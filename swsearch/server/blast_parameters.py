"""Parameters of BLAST's URL API, and the search that a Put describes.

A parameter without support here is refused with the remedy. A parameter that steers blastp's heuristic or NCBI's
pages is accepted without effect. An unknown parameter is refused, since it may be mistyped.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from swsearch.alphabet import PROTEIN
from swsearch.client.search_request import MAX_TITLE, SERVER_ROWS, SearchRequest
from swsearch.errors import InputError, OptionError, format_value, printable
from swsearch.options.kinds import MAX_POSITION
from swsearch.pipeline.fingerprint import PROGRAM_NAMES
from swsearch.scoring import matrix_names
from swsearch.server.errors import ServerProblem

BLAST_COMMANDS = ("Put", "Get", "Delete")

SAYS_NO = ("f", "false", "no", "none", "off", "0")
"""Values that switch something off, in lower case."""

SAYS_YES = ("t", "true", "yes", "on", "1")

MAX_NAME_COMPARED = 40
"""Letters of an unknown parameter that are compared with the known names."""


class BlastParameter(NamedTuple):
    """A parameter of BLAST's URL API."""

    name: str
    """Name in upper case, as NCBI writes it; requests may write it in any case."""
    commands: Sequence[str]
    """Commands that it belongs to; other commands accept it, too."""
    effect: str
    """``used``, ``none`` or ``refused``."""
    meaning: str
    """Its effect, the reason why it has none, or the parameter to send instead."""
    allowed: tuple[str, ...]
    """Values of a refused parameter that request nothing, in lower case; they are accepted."""


_PAGES = "concerns NCBI's own pages"

_MEANINGS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("used", "Put Get Delete"): {"CMD": "Put, Get or Delete"},
    ("used", "Put"): {
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
            "0, F or none: BLAST's published statistics, without composition. Left out: those of this server, which "
            "know the composition of query and subject; scores are the same. 1, 2 and 3 are not there"
        ),
        "QUERY_FROM QUERY_TO": "first and last residue of the queries that are searched, counted from 1",
        "JOB_TITLE": "what the job is called in this server's lists",
    },
    ("used", "Get Delete"): {"RID": "the search, as the answer to Put named it"},
    ("used", "Get"): {
        "FORMAT_TYPE": "the report, see below; checked with Put too, and to be given with Get",
        "FORMAT_OBJECT": "SearchInfo asks for the state; Alignment, the default, for the report",
        "ALIGNMENT_VIEW": "Pairwise or Tabular, for FORMAT_TYPE Text and HTML",
    },
    ("refused", "Put Get"): {"SERVICE": "there is no PSI-BLAST, PHI-BLAST or RPS-BLAST here"},
    ("none", "Put"): {
        "WORD_SIZE THRESHOLD": "no words are looked for: every subject is scored",
        "NUCL_REWARD NUCL_PENALTY TEMPLATE_TYPE TEMPLATE_LENGTH": "concerns nucleotides",
        "DB_GENETIC_CODE": "a DNA database has its own",
        "EMAIL TOOL": "nobody is written to",
        "AUTO_FORMAT CLIENT ENDPOINTS LAYOUT PAGE PAGE_TYPE QUERY_BELIEVE_DEFLINE USER_TYPE VIEWREPORT "
        "NO_DATABASE_OVERRIDE": _PAGES,
    },
    ("none", "Get"): {
        "ALIGNMENTS DESCRIPTIONS": "every report has all hits; HITLIST_SIZE of the search says how many",
        "NCBI_GI": "there are no GIs",
        "ENTREZ_LINKS_NEW_WINDOW RESULTS_FILE SHOW_OVERVIEW": _PAGES,
    },
    ("refused", "Put"): {
        "MEGABLAST": "this is a program for nucleotides",
        "SHORT_QUERY_ADJUST": "say what it would change: MATRIX=PAM30, GAPCOSTS=9 1, EXPECT=20000",
        "UNGAPPED_ALIGNMENT": "gaps that cost much come close: GAPCOSTS=1000 1000",
        "ENTREZ_QUERY EQ_TEXT": (
            "there is no Entrez; the HTTP API's include_ids lists identifiers, and its taxids taxa"
        ),
        "QUERY_FILE": "send its content as QUERY",
        "OTHER_ADVANCED": "give the parameters themselves",
        "SEARCHSP_EFF": "the HTTP API's dbsize does most of it",
        "PERC_IDENT": "the HTTP API's min_identity does it",
        "PHI_PATTERN PSSM I_THRESH": "there is no PSI-BLAST and no PHI-BLAST; the HTTP API has iterations",
    },
    ("refused", "Get"): {
        "EXPECT_LOW EXPECT_HIGH FORMAT_ENTREZ_QUERY "
        "FORMAT_EQ_TEXT": "filter the report, or search with another EXPECT",
    },
}
"""Parameters by effect and commands: names with one meaning, and the meaning."""

PARAMETERS: Mapping[str, BlastParameter] = {
    name: BlastParameter(
        name, commands.split(), effect, meaning, ("plain",) if name == "SERVICE" else ("(none)", *SAYS_NO)
    )
    for (effect, commands), meanings in _MEANINGS.items()
    for names, meaning in meanings.items()
    for name in names.split()
}
"""Every known parameter by name."""

_WORD_OF_OPTION = {"queries": "QUERY", "database": "DATABASE"} | {
    name: row.url for name, row in SERVER_ROWS.items() if row.url
}


def parse_parameters(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return values by parameters in upper case, without empty values.

    It raises `InputError` if a parameter is unknown or refused, or has two values.
    """
    words: dict[str, str] = {}
    for written, text in pairs:
        name, value = written.strip().upper(), text.strip()
        if value and words.setdefault(name, value) != value:
            raise InputError(
                f"{name}: got {format_value(words[name])} and {format_value(value)}, expected one of them"
            )
    for name, value in words.items():
        word = PARAMETERS.get(name)
        if word is None:
            close = difflib.get_close_matches(name[:MAX_NAME_COMPARED], PARAMETERS, n=1)
            remedy = f"; did you mean {close[0]}?" if close else ""
            raise InputError(f"got the parameter {format_value(name)}, which is not known here{remedy}")
        if word.effect == "refused" and value.lower() not in word.allowed:
            raise InputError(f"{name}: got {format_value(value)}, which is not supported: {word.meaning}")
    return words


def command_of(words: Mapping[str, str]) -> str:
    """Return the command, as in `BLAST_COMMANDS`; raise `OptionError` if it is none of them."""
    command = words.get("CMD", "")
    if command.capitalize() not in BLAST_COMMANDS:
        raise OptionError("CMD", command, f"one of {', '.join(BLAST_COMMANDS)}")
    return command.capitalize()


def notes_on(words: Mapping[str, str]) -> list[str]:
    """Return notes on parameters without effect and on the statistics."""
    notes = [
        f"{name} has no effect: {PARAMETERS[name].meaning}" for name in words if PARAMETERS[name].effect == "none"
    ]
    if "GENETIC_CODE" in words and (program := words.get("PROGRAM", "").lower()) in ("blastp", "tblastn"):
        notes.append(f"GENETIC_CODE has no effect: queries of {program} are proteins")
    if "COMPOSITION_BASED_STATISTICS" not in words:
        notes.append(
            "E-values are this server's, which know the composition of query and subject; "
            "COMPOSITION_BASED_STATISTICS of 0 gives BLAST's without composition"
        )
    return notes


def request_of(words: Mapping[str, str], databases: Sequence[str], dna: Collection[str] = ()) -> SearchRequest:
    """Return the search that a Put describes, of one of ``databases``; ``dna`` names those that hold DNA.

    It raises `InputError` if the search is not possible.
    """
    for name in ("PROGRAM", "DATABASE", "QUERY"):
        if name not in words:
            raise InputError(f"{name}: got none, expected {PARAMETERS[name].meaning}")
    database = words["DATABASE"]
    if database not in databases:
        several = "; one at a time" if len(database.split()) > 1 else ""
        raise OptionError("DATABASE", database, f"one of {', '.join(databases)}{several}")
    options = _translation(words, database in dna)
    if "EXPECT" in words:
        options["evalue"] = _parse_evalue(words["EXPECT"])
    if "HITLIST_SIZE" in words:
        options["max_hits"] = _parse_count("HITLIST_SIZE", words["HITLIST_SIZE"])
    options |= _scoring(words) | _masking(words) | _statistics(words) | _query_range(words)
    title = printable(words.get("JOB_TITLE", ""), " ")[:MAX_TITLE]
    origin = {"command": "BLAST's URL API"}
    request = SearchRequest(database, _queries(words["QUERY"]), "fasta", options, title, origin)
    _ = request.search_options  # checks them
    return request


def sentence_of(problem: ServerProblem) -> str:
    """Return the message of a problem, with BLAST's parameter instead of our option."""
    message = str(problem)
    parameter = _WORD_OF_OPTION.get(problem.option)
    return (
        parameter + message.removeprefix(problem.option)
        if parameter and message.startswith(problem.option)
        else message
    )


def _translation(words: Mapping[str, str], is_dna: bool) -> dict[str, Any]:
    """Return the options that say whether queries are DNA, by the program and the kind of the database."""
    program, plain, translated = words["PROGRAM"].lower(), PROGRAM_NAMES[False, is_dna], PROGRAM_NAMES[True, is_dna]
    if program not in (plain, translated):
        holds = f"{words['DATABASE']} holds {'DNA' if is_dna else 'proteins'}"
        raise OptionError("PROGRAM", words["PROGRAM"], f"{plain}, or {translated} for DNA queries: {holds}")
    if program == plain:
        return {}
    code = words.get("GENETIC_CODE")
    return {"translate": True} | ({"genetic_code": _parse_count("GENETIC_CODE", code)} if code else {})


def _scoring(words: Mapping[str, str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    named = {name: words[name] for name in ("MATRIX", "MATRIX_NAME") if name in words}
    if len({value.upper() for value in named.values()}) > 1:
        costs_text = " and ".join(f"{name} {format_value(value)}" for name, value in named.items())
        raise InputError(f"got {costs_text}, expected one of them")
    for name, value in named.items():
        matrices = {each.upper(): each for each in matrix_names(PROTEIN)}
        if value.upper() not in matrices:
            raise OptionError(name, value, f"one of {', '.join(matrices.values())}")
        options["matrix"] = matrices[value.upper()]
    if "GAPCOSTS" in words:
        costs = re.fullmatch(r"(\d{1,9})(?:\s*,\s*|\s+)(\d{1,9})", words["GAPCOSTS"], re.ASCII)
        if costs is None:
            raise OptionError("GAPCOSTS", words["GAPCOSTS"], "existence and extension, such as 11 1")
        options |= {"gap_open": int(costs[1]), "gap_extend": int(costs[2])}
    return options


def _query_range(words: Mapping[str, str]) -> dict[str, Any]:
    ends = {name: _parse_count(name, words[name]) for name in ("QUERY_FROM", "QUERY_TO") if name in words}
    if not ends:
        return {}
    first, last = ends.get("QUERY_FROM", 1), ends.get("QUERY_TO", MAX_POSITION)
    if not first <= last <= MAX_POSITION:
        raise OptionError("QUERY_TO", str(last), f"a place from QUERY_FROM, {first:,}, to {MAX_POSITION:,}")
    return {"query_loc": f"{first}-{last}"}


def _masking(words: Mapping[str, str]) -> dict[str, Any]:
    filtering, lower = words.get("FILTER", "F"), words.get("LCASE_MASK", "no")
    if filtering.lower() not in SAYS_NO:
        raise OptionError(
            "FILTER", filtering, "F: there is no SEG here",
            "mask queries beforehand as lower case, such as by segmasker, and give LCASE_MASK yes",
        )  # fmt: skip
    if lower.lower() not in (*SAYS_YES, *SAYS_NO):
        raise OptionError("LCASE_MASK", lower, "yes or no")
    return {"query_mask": "lower"} if lower.lower() in SAYS_YES else {}


def _statistics(words: Mapping[str, str]) -> dict[str, Any]:
    value = words.get("COMPOSITION_BASED_STATISTICS")
    if value is None:
        return {}
    if value.lower() not in SAYS_NO:
        raise OptionError(
            "COMPOSITION_BASED_STATISTICS", value, "0: BLAST's adjustments of scores are not there",
            "or leave it out for E-values that know the composition of query and subject",
        )  # fmt: skip
    return {"statistics": "published"}


def _queries(text: str) -> bytes:
    """Return queries as FASTA; the reader of sequences checks their letters."""
    if text.startswith(">"):
        return text.encode("utf-8", errors="replace")
    if re.fullmatch(r"[A-Za-z*\-\s]+", text):
        return f">query_1\n{text}\n".encode("ascii")
    expected = "proteins as FASTA, whose first line begins with >, or the letters of one"
    if re.fullmatch(r"[\w.|:\-]+(?:\s+[\w.|:\-]+)*", text, re.ASCII):
        expected = "proteins as FASTA, or the letters of one; nothing is looked up by identifiers here"
    raise OptionError("QUERY", text, expected)


def _parse_evalue(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise OptionError("EXPECT", text, "a number > 0")
    return value


def _parse_count(name: str, text: str) -> int:
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII) or int(text) < 1:
        raise OptionError(name, text, "a whole number >= 1")
    return int(text)
