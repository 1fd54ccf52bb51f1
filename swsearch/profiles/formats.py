"""Formats of query files and of saved profiles.

Query files are recognized by their first bytes, saved profiles by the file's name. FASTA needs only this module: the
readers of other formats are imported on use. The scores of a profile are its log-odds times `Profile.scale`, so that
they fit the matrix's gap costs. Other programs expect log-odds, probabilities and transitions, which this module
computes.
"""

from __future__ import annotations

import re
from pathlib import PurePath

import numpy as np

from swsearch.alphabet import PROTEIN
from swsearch.blocks import FloatArray
from swsearch.db.input_stream import ByteSource
from swsearch.errors import InputError, SequenceError, check_choice, printable
from swsearch.matrices import FALLBACK_GAP_COSTS, GAP_COSTS
from swsearch.options.kinds import QUERY_FORMATS, QueryFormat
from swsearch.profiles.calibration import AMINO_ACIDS, N_AMINO_ACIDS, lambda_of
from swsearch.profiles.profile import Profile
from swsearch.scoring import PositionGapCosts, load_matrix

HEAD_BYTES = 1 << 16
"""Bytes of a file that its format is recognized by."""

_BEGINNINGS = (
    ("stockholm", rb"# STOCKHOLM"),
    ("clustal", rb"(CLUSTAL|MUSCLE|PROBCONS|MSAPROBS|Kalign|Biopython)[ \t(]"),
    ("hmm", rb"HMMER[0-9]"),
    ("hhm", rb"HHsearch "),
    ("asn", rb"PssmWithParameters\s*::="),
    ("pssm", rb"Last position-specific scoring matrix"),
    ("json", rb'\{\s*"swsearch"'),
    ("a3m", rb"#[^\n]*\n([ \t\r]*\n|#[^\n]*\n)*>"),
)
"""Formats, and what their files begin with, after blanks."""

_A3M_NAME = re.compile(r"\.a3m(\.(gz|xz|bz2|zst))?$")

_NOT_READ = (
    (rb"0\x80", "a PSSM in binary ASN.1; write it as text, as psiblast -out_pssm does"),
    (rb"<\?xml[^>]*>\s*(<!DOCTYPE[^>]*>\s*)?<Pssm", "a PSSM in XML; write it as ASN.1 text, as psiblast does"),
)


PROFILE_ENDINGS: dict[str, QueryFormat] = {
    ".json": "json", ".jsonl": "json", ".asn": "asn", ".smp": "asn", ".chk": "asn", ".pssm": "pssm", ".hmm": "hmm",
    ".hhm": "hhm",
}  # fmt: skip
"""The format in which profiles are written, by how the file's name ends. Files that are read may have any name."""

_PROGRAMS = {
    "json": "JSON lines", "asn": "PSI-BLAST's ASN.1", "pssm": "PSI-BLAST's ASCII", "hmm": "HMMER",
    "hhm": "HH-suite",
}  # fmt: skip

_OF_MANY = ("json", "hmm")
"""Formats whose files hold several profiles."""


def format_to_write(path: str, n_profiles: int = 1) -> QueryFormat:
    """Return the format of a profile file, by its name and number of profiles; ``-`` is stdout, in JSON lines."""
    ending = PurePath(path).suffix.lower()
    if path != "-" and ending not in PROFILE_ENDINGS:
        names = [
            f"{' or '.join(each for each, one in PROFILE_ENDINGS.items() if one == format_)} ({program})"
            for format_, program in _PROGRAMS.items()
        ]
        got = f"the ending '{ending}'" if ending else "a name without an ending"
        raise InputError(
            f"{path}: got {got}, expected a format of profiles; choose a name that ends in {', '.join(names)}"
        )
    format_ = "json" if path == "-" else PROFILE_ENDINGS[ending]
    if n_profiles > 1 and format_ not in _OF_MANY:
        raise InputError(
            f"{path}: got {n_profiles:,} profiles, expected one in a file of {_PROGRAMS[format_]}; save them as "
            ".jsonl or .hmm"
        )
    return format_


def detect_format(source: ByteSource, format_: QueryFormat = "auto") -> QueryFormat:
    """Return the requested format of a file, or detect it from the first bytes.

    FASTA is whatever is nothing else. A file that begins with ``>`` is A3M where its name says so, for A3M without
    gaps cannot be told from FASTA.
    """
    check_choice("query_format", format_, QUERY_FORMATS)
    if format_ != "auto":
        return format_
    head = source.peek(HEAD_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    head = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for pattern, what in _NOT_READ:
        if re.match(pattern, head):
            raise SequenceError(source.name, f"looks like {what}")
    for name, pattern in _BEGINNINGS:
        if re.match(pattern, head):
            return name  # type: ignore[return-value]
    return "a3m" if head.startswith(b">") and _A3M_NAME.search(source.name) else "fasta"


TRANSITIONS = ("m->m", "m->i", "m->d", "i->m", "i->i", "d->m", "d->d")
"""Transitions of a model of HMMER or HH-suite, in the order of both formats; match, insert and delete states."""

MODEL_LETTERS = "".join(sorted(AMINO_ACIDS))
"""The amino acids in the order of both formats."""

MODEL_PLACES = [AMINO_ACIDS.index(letter) for letter in MODEL_LETTERS]
"""Codes of these letters."""

_MIN_PROBABILITY = 1e-9
"""Smallest probability of a letter: none is impossible."""

_MAX_EXTENSION = 0.99
"""Largest probability that a gap goes on, where going on costs nothing."""


def unit_of(profile: Profile) -> float:
    """Return the size of a unit of the profile's log-odds, nats."""
    if profile.lambda_ is None:
        raise InputError(
            f"profile {profile.identifier}: lambda_ is None, expected the nats of a unit of its scores; give it, or "
            "save the profile as .json"
        )
    return profile.lambda_


def log_ratios(profile: Profile) -> FloatArray:
    """Return the log-odds of the amino acids against the profile's background, nats, shape (n, 20)."""
    if profile.frequencies is not None and profile.background is not None:
        with np.errstate(divide="ignore"):
            ratios: FloatArray = np.log(profile.frequencies / profile.background)
        unseen = ~ratios.any(axis=1)  # letters such as B that only the query has: their scores are the matrix's
        ratios[unseen] = unit_of(profile) * profile.scores[unseen, :N_AMINO_ACIDS]
        return ratios
    return profile.scores[:, :N_AMINO_ACIDS].astype(np.float64) * (unit_of(profile) / profile.scale)


def probabilities(profile: Profile, background: FloatArray) -> FloatArray:
    """Return frequencies whose odds against another background, shape (20,), are the profile's; shape (n, 20)."""
    frequencies = np.maximum(background * np.exp(log_ratios(profile)), _MIN_PROBABILITY)
    frequencies /= frequencies.sum(axis=1, keepdims=True)
    return frequencies


def matrix_name(profile: Profile) -> str | None:
    """Return the shipped matrix in whose units the profile is; None where there is none."""
    unit = unit_of(profile)
    return next((name for name in GAP_COSTS if np.isclose(lambda_of(load_matrix(name)), unit, rtol=1e-6)), None)


def gap_costs(profile: Profile) -> tuple[int, int]:
    """Return the costs to open and to extend a gap: the profile's, else those that its matrix has by default."""
    if profile.gap_open is not None and profile.gap_extend is not None:
        return profile.gap_open, profile.gap_extend
    return GAP_COSTS.get(matrix_name(profile) or "", FALLBACK_GAP_COSTS)


def transitions(profile: Profile) -> FloatArray:
    """Return the probabilities of `TRANSITIONS` after the begin and after each position, shape (n + 1, 7).

    A gap begins with the odds exp(-lambda (open + extend)) to a match, and goes on with probability
    exp(-lambda extend): of BLOSUM62 11/1, 0.021 and 0.73, where jackhmmer takes 0.02 and 0.4. Its end costs what
    normalization makes it cost. No gap begins before the first position, or after the last.
    """
    n, unit = len(profile), unit_of(profile)
    costs = profile.gaps or PositionGapCosts.uniform(n, *gap_costs(profile))
    table = np.tile([1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0], (n + 1, 1))
    insertion_extend, deletion_extend = costs.insertion_extend[:-1], costs.deletion_extend[1:]
    to_insert = np.exp(-unit * (costs.insertion_open[:-1] + insertion_extend))
    to_delete = np.exp(-unit * (costs.deletion_open[1:] + deletion_extend))
    begins = np.column_stack([np.ones(n - 1), to_insert, to_delete])
    inner = table[1:n]
    inner[:, :3] = begins / begins.sum(axis=1, keepdims=True)
    inner[:, 4] = np.minimum(np.exp(-unit * insertion_extend), _MAX_EXTENSION)
    inner[:, 6] = np.minimum(np.exp(-unit * deletion_extend), _MAX_EXTENSION)
    inner[:, 3], inner[:, 5] = 1 - inner[:, 4], 1 - inner[:, 6]
    return table


def one_word(text: str) -> str:
    """Return a name as formats take it in which a name ends at a blank."""
    return "_".join(printable(text).split()) or "profile"


def display_letters(profile: Profile) -> str:
    """Return the sequence that a profile is shown as, with X for a stop."""
    return PROTEIN.decode(profile.codes).replace("*", "X")
