"""NCBI's PSSMs, read and written.

ASCII, and ASN.1 text (``.asn`` of psiblast, ``.smp`` of CDD and makeprofiledb).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from swsearch.alphabet import PROTEIN, ByteArray
from swsearch.blocks import FloatArray
from swsearch.errors import InputError, printable
from swsearch.matrices.tables import MAX_GAP_COST
from swsearch.profiles import calibration
from swsearch.profiles.construction import normalize, observations_of
from swsearch.profiles.formats import gap_costs, log_ratios, matrix_name, one_word, probabilities, unit_of
from swsearch.profiles.profile import Profile
from swsearch.profiles.sequence_weights import DEFAULT_DIVERSITY, mix_by_diversity, observations_by_entropy
from swsearch.profiles.text_lines import MAX_COLUMNS, AsnNode, TextFile, join_quoted, parse
from swsearch.scoring import Matrix, Scoring, load_matrix
from swsearch.statistics.karlin_altschul import KarlinAltschul, published_statistics

ASCII_HEAD = "Last position-specific scoring matrix computed"
"""Beginning of psiblast's ASCII."""

STDAA = "-ABCDEFGHIKLMNPQRSTVWXYZU*OJ"
"""Letters of NCBIstdaa by their codes, the rows of a PSSM."""

_NCBI_ORDER = "ARNDCQEGHILKMFPSTWYV"
"""Columns of the ASCII: the order of our codes."""

_NO_SCORE = -(2**15)
"""NCBI's value for a letter without a score."""

_UNNAMED = "Query_"
"""Prefix of psiblast's own names of queries; the title then holds the query's name."""


def read_ascii(text: TextFile, scoring: Scoring) -> list[Profile]:
    """Read psiblast's ``-out_ascii_pssm``, with or without the observed percentages.

    Parameters
    ----------
    scoring : Scoring
        That of the search, in whose units the profile is to be.
    """
    columns: list[str] | None = None
    profiles: list[Profile] = []
    letters: list[str] = []
    scores: list[list[int]] = []
    lambda_, begins = None, 0

    def finish() -> None:
        if not scores:
            text.ends_early("a line for each position: its number, its letter and 20 scores")
        profiles.append(_make_ascii_profile(text, begins, "".join(letters), scores, lambda_, scoring))

    for k, line in enumerate(text.lines):
        words = line.split()
        if line.startswith(ASCII_HEAD):
            if columns is not None:
                finish()
            columns, letters, scores, lambda_, begins = [], [], [], None, k
        elif not words:
            continue
        elif columns == []:
            columns = words[:20]
            if sorted(columns) != sorted(_NCBI_ORDER):
                text.fail(f"expected the letters of the columns, {' '.join(_NCBI_ORDER)}", k)
        elif columns is None:
            text.fail(f"expected '{ASCII_HEAD}' first", k)
        elif words[0].isdigit():
            _read_row(text, k, line, columns, letters, scores)
        elif words[:2] == ["PSI", "Ungapped"] and len(words) == 4:
            lambda_ = text.parse_float(words[3], "lambda", k)
        elif words[0] not in ("K", "Standard", "PSI"):
            text.fail("expected the number of a position, its letter and its scores", k)
    if columns is None:
        text.fail(f"expected '{ASCII_HEAD}' first")
    finish()
    return profiles


def _read_row(
    text: TextFile, at: int, line: str, columns: list[str], letters: list[str], scores: list[list[int]]
) -> None:
    """Read a position."""
    words = line.split()
    if text.parse_integer(words[0], "position", at) != len(scores) + 1:
        text.fail(f"position {words[0]}, expected {len(scores) + 1}: a line is missing", at)
    if len(words) not in (22, 42, 44) or len(words[1]) != 1:
        expected = "a number, a letter and 20 scores, then 20 percentages and 2 numbers or nothing"
        text.fail(f"{len(words)} words, expected {expected}", at)
    letters.append(words[1])
    values = [text.parse_integer(word, "score", at) for word in words[2:22]]
    for word in words[22:42]:
        text.parse_integer(word, "percentage", at)
    scores.append([values[columns.index(letter)] for letter in calibration.AMINO_ACIDS])


def _make_ascii_profile(
    text: TextFile, at: int, letters: str, scores: list[list[int]], lambda_: float | None, scoring: Scoring
) -> Profile:
    codes = text.encode(letters, at)
    table = np.array(scores, dtype=np.float64)
    if (np.abs(table) > -_NO_SCORE).any():
        text.fail("a score beyond 32,768, expected those of a matrix", at)
    source = f"PSI-BLAST's matrix in {text.source}"
    ratio = _ratio(lambda_, scoring)
    if ratio != 1:
        source += f", scaled by {ratio:.3f} to the units of {scoring.matrix.name}"
    name = text.source.replace("\\", "/").rsplit("/", 1)[-1].split(".")[0] or "profile"
    return Profile(
        "query" if name.startswith("<") else name.replace(" ", "_"), "", codes,
        calibration.letter_scores(_fill_missing(table, scoring) * ratio, codes, scoring.matrix),
        source=source, lambda_=calibration.lambda_of(scoring.matrix),
    )  # fmt: skip


def _ratio(lambda_: float | None, scoring: Scoring) -> float:
    """Return how many units of the search's matrix a unit of other scores is; 1 where they are the same."""
    own = calibration.lambda_of(scoring.matrix)
    return 1.0 if lambda_ is None or lambda_ <= 0 or calibration.is_same_unit(lambda_, own) else lambda_ / own


def _fill_missing(table: FloatArray, scoring: Scoring) -> FloatArray:
    """Replace missing scores by the lowest of the matrix."""
    return np.where(table <= _NO_SCORE, float(scoring.matrix.min), table)


def read_asn(text: TextFile, scoring: Scoring) -> list[Profile]:
    """Read ``PssmWithParameters`` in ASN.1 text.

    Final scores are taken where there are any, divided by their scaling factor; else scores are made of the
    frequencies. Gap costs are taken where they are given and the scores are in the matrix's units as they are.
    """
    return [_make_asn_profile(text, node, scoring) for node in parse(text)]


def _make_asn_profile(text: TextFile, node: AsnNode, scoring: Scoring) -> Profile:
    pssm = node.node("pssm")
    if pssm is None:
        text.fail("no pssm in it, expected PssmWithParameters ::= { pssm { ... } }", node.at)
    if pssm.text("isProtein") == "FALSE":
        text.fail("isProtein is FALSE, expected a matrix for proteins", pssm.at)
    n_rows, n = (text.parse_integer(pssm.text(name) or "0", name, pssm.at) for name in ("numRows", "numColumns"))
    if not 0 < n <= MAX_COLUMNS or not len(calibration.AMINO_ACIDS) <= n_rows <= len(STDAA):
        expected = f"26 to {len(STDAA)} rows and at least one column"
        text.fail(f"{n_rows} rows and {n} columns, expected {expected}", pssm.at)
    identifier, description, codes = _query(text, pssm, n)
    by_row = pssm.text("byRow") == "TRUE"
    matrix_name = join_quoted(node.text("params", "rpsdbparams", "matrixName"))
    lambda_ = _lambda_of(matrix_name)
    source = f"PSI-BLAST's matrix in {text.source}"
    if (final := pssm.node("finalData", "scores")) is not None:
        factor = float(text.parse_integer(pssm.text("finalData", "scalingFactor") or "1", "scalingFactor", final.at))
        table = _table(text, final, n_rows, n, by_row)
        scores = np.where(table <= _NO_SCORE, float(scoring.matrix.min), table / max(factor, 1.0))
        if (ratio := _ratio(lambda_, scoring)) != 1:
            source += f", scaled by {ratio:.3f} to the units of {scoring.matrix.name}"
        scores = scores * ratio
    else:
        scores, source = (
            _scores_from_frequencies(text, pssm, n_rows, n, by_row, scoring),
            f"frequencies in {text.source}",
        )
    unit = calibration.lambda_of(scoring.matrix)
    costs = _gap_costs(node) if calibration.is_same_unit(lambda_ or 0.0, unit) else None
    return Profile(
        identifier, description, codes, calibration.letter_scores(scores, codes, scoring.matrix),
        gap_open=costs and costs[0], gap_extend=costs and costs[1], source=source, lambda_=unit,
    )  # fmt: skip


def _lambda_of(name: str) -> float | None:
    """Return the lambda of a matrix by its name; None where it is not known."""
    try:
        return calibration.lambda_of(load_matrix(name, PROTEIN)) if name else None
    except InputError:
        return None


def _gap_costs(node: AsnNode) -> tuple[int, int] | None:
    """Return the gap costs that a PSSM goes with; None where it does not say both."""
    words = [node.text("params", "rpsdbparams", name) for name in ("gapOpen", "gapExtend")]
    if not all(word.isdigit() and len(word) < 6 and int(word) <= MAX_GAP_COST for word in words):
        return None
    return int(words[0]), int(words[1])


def _query(text: TextFile, pssm: AsnNode, n: int) -> tuple[str, str, ByteArray]:
    """Return identifier, description and codes of the query of a PSSM."""
    query = pssm.node("query")
    sequence = "" if query is None else query.text("inst", "seq-data")
    if query is None or not sequence:
        text.fail("no query in it, expected query seq { ... inst { ... seq-data ... } }", pssm.at)
    if sequence.startswith("'"):
        digits = "".join(sequence[1:-2].split())
        try:
            stdaa = bytes.fromhex(digits)
            letters = "".join(STDAA[code] for code in stdaa).replace("-", "X")
        except (ValueError, IndexError):
            text.fail("the query's sequence is no NCBIstdaa, expected codes from 00 to 1B", query.at)
    else:
        letters = join_quoted(sequence)
    codes = text.encode(letters, query.at)
    if len(codes) != n:
        text.fail(f"a query of {len(codes)} residues, expected {n} as numColumns says", query.at)
    title = ""
    descriptions = query.node("descr")
    if descriptions is not None:
        title = join_quoted(descriptions.text("title"))
    identifier = _identifier(query.node("id"))
    if (identifier.startswith(_UNNAMED) or not identifier) and title:
        identifier, _, title = title.partition(" ")
    return identifier or "query", title, codes


def _identifier(node: AsnNode | None) -> str:
    """Return the first word that names a sequence: an accession, a string or a number."""
    if node is None:
        return ""
    for key in ("accession", "str", "local str", "tag str", "tag id", "local id"):
        if text := node.text(key):
            return join_quoted(text)
    inner = (value for value in [*node.entries.values(), *node.items] if isinstance(value, AsnNode))
    return next((name for one in inner if (name := _identifier(one))), "")


def _table(text: TextFile, node: AsnNode, n_rows: int, n: int, by_row: bool) -> FloatArray:
    """Return numbers by position and amino acid, shape (n, 20), float64."""
    if len(node.items) != n_rows * n:
        problem = f"{len(node.items)} numbers, expected {n_rows} x {n}"
        text.fail(f"{problem} as numRows and numColumns say", node.at)
    values = np.array([_number(text, item, node.at) for item in node.items])
    table = values.reshape(n_rows, n).T if by_row else values.reshape(n, n_rows)
    return table[:, [STDAA.index(letter) for letter in calibration.AMINO_ACIDS]]


def _number(text: TextFile, item: AsnNode | str, at: int) -> float:
    """Return a number, as digits or as mantissa, base and exponent."""
    if isinstance(item, str):
        return text.parse_float(item, "number", at)
    if len(item.items) != 3 or not all(isinstance(part, str) for part in item.items):
        text.fail("expected a number, or { mantissa, 10, exponent }", item.at)
    mantissa, base, exponent = (text.parse_float(str(part), "number", item.at) for part in item.items)
    if base not in (2.0, 10.0) or abs(exponent) > 300:
        text.fail("expected a number, or { mantissa, 10, exponent }", item.at)
    return float(mantissa * base**exponent)


def _scores_from_frequencies(
    text: TextFile, pssm: AsnNode, n_rows: int, n: int, by_row: bool, scoring: Scoring
) -> FloatArray:
    """Make scores of the frequencies that a PSSM without final scores has."""
    data = pssm.node("intermediateData")
    for name in ("freqRatios", "weightedResFreqsPerPos", "resFreqsPerPos"):
        node = None if data is None else data.node(name)
        if node is None:
            continue
        table = _table(text, node, n_rows, n, by_row)
        if (table < 0).any():
            text.fail(f"a negative number in {name}, expected frequencies", node.at)
        totals = table.sum(axis=1, keepdims=True)
        table = np.divide(table, totals, out=np.tile(calibration.BACKGROUND, (n, 1)), where=totals > 0)
        if name != "freqRatios":  # which has pseudo-counts already
            table = mix_by_diversity(table, np.full(n, DEFAULT_DIVERSITY), scoring.matrix)
        return calibration.scores_of_frequencies(table, calibration.BACKGROUND, scoring.matrix)
    text.fail("neither scores nor frequencies, expected finalData { scores { ... } }", pssm.at)


def _scoring_of(profile: Profile) -> tuple[Scoring, KarlinAltschul]:
    """Return a profile's matrix and gap costs with BLAST's constants, or psiblast's defaults where it has none."""
    name = matrix_name(profile)
    scoring = Scoring() if name is None else Scoring(name, *gap_costs(profile))
    statistics = published_statistics(scoring, "local")
    if statistics is None:
        scoring = Scoring()
        statistics = published_statistics(scoring, "local")
    assert statistics is not None
    return scoring, statistics


def _scores_in(profile: Profile, matrix: Matrix) -> npt.NDArray[np.int8]:
    """Return the scores in a matrix's units and without the profile's scale, shape (n, 27)."""
    unit = calibration.lambda_of(matrix)
    if profile.scale == 1 and math.isclose(unit_of(profile), unit, rel_tol=1e-6):
        return profile.scores
    return calibration.letter_scores(log_ratios(profile) / unit, profile.codes, matrix)


def ascii_lines(profile: Profile) -> Iterator[str]:
    """Yield the lines of a profile as psiblast's ``-out_ascii_pssm`` has them.

    Percentages are those of the alignment, and 0 where only the query is. Of a profile without an alignment they are
    those of its frequencies, pseudo-counts included, or 0 where it has none. The last column is the number of
    independent observations divided by that of pseudo-counts; psiblast counts observations in another way. Lambdas
    are those of the matrix in whose units the scores are.
    """
    scoring, gapped = _scoring_of(profile)
    scores = _scores_in(profile, scoring.matrix)
    yield ""
    yield (
        f"{ASCII_HEAD}, weighted observed percentages rounded down, information per position, and relative weight "
        "of gapless real matches to pseudocounts"
    )
    heading = "".join(f"{letter:>4}" for letter in _NCBI_ORDER)
    yield f"         {heading}{heading}"
    order = [calibration.AMINO_ACIDS.index(letter) for letter in _NCBI_ORDER]
    seen, information, weights = _observations(profile)
    percentages = np.floor(100 * seen[:, order] + 0.5).astype(np.int64)
    table = scores[:, order]
    width = 4 if not table.size or table.min() > -100 else 5  # a blank stays between two numbers
    for k, letter in enumerate(PROTEIN.decode(profile.codes)):
        row = "".join(f"{value:>{width}}" for value in table[k].tolist())
        shares = "".join(f"{value:>4}" for value in percentages[k].tolist())
        yield f"{k + 1:>5} {letter}  {row} {shares}  {information[k]:.2f} {weights[k]:.2f}"
    yield ""
    yield "                      K         Lambda"
    yield f"PSI Ungapped    {'-':>11} {calibration.lambda_of(scoring.matrix):>10.4f}"
    yield f"PSI Gapped      {gapped.k:>11.4f} {gapped.lambda_:>10.4f}"


def _observations(profile: Profile) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return observed frequencies, shape (n, 20), and bits and weights of observations by position, shape (n,)."""
    n = len(profile)
    seen, weights, information = np.zeros((n, calibration.N_AMINO_ACIDS)), np.zeros(n), np.zeros(n)
    if profile.frequencies is not None:
        seen, information = profile.frequencies, calibration.information(profile.frequencies, profile.background)
    if profile.alignment is not None:
        observed, _ = observations_of(profile.alignment)
        is_aligned, seen = observed.n_rows > 1, normalize(observed)
        observations, pseudo = observations_by_entropy(seen, observed.observations)
        weights = np.where(is_aligned, (1 - observed.gaps) * observations / pseudo, 0.0)
        seen, information = seen * is_aligned[:, None], information * is_aligned
    return seen, information, weights


_ASN = """\
PssmWithParameters ::= {{
  pssm {{
    isProtein TRUE,
    numRows {n_rows},
    numColumns {n},
    byRow FALSE,
    query seq {{
      id {{
        local str "{unnamed}1"
      }},
      descr {{
        title {title}
      }},
      inst {{
        repr raw,
        mol aa,
        length {n},
        seq-data ncbistdaa '{sequence}'H
      }}
    }},
    intermediateData {{
      freqRatios {{
        {frequencies}
      }}
    }},
    finalData {{
      scores {{
        {scores}
      }},
      {constants}
    }}
  }},
  params {{
    rpsdbparams {{
      matrixName "{matrix}",
      gapOpen {gap_open},
      gapExtend {gap_extend}
    }}
  }}
}}
"""


def asn_lines(profile: Profile) -> Iterator[str]:
    """Yield the lines of a profile as ``PssmWithParameters`` in ASN.1 text, as psiblast's ``-out_pssm`` has them.

    Frequencies with pseudo-counts are included: psiblast makes scores of them that fit the composition of a subject.
    Its reports name the query by the first word of the title.
    """
    scoring, gapped = _scoring_of(profile)
    scores = _scores_in(profile, scoring.matrix)
    constants = {"lambda": gapped.lambda_, "kappa": gapped.k, "h": gapped.h}
    letters = np.array([PROTEIN.letters.find(letter) for letter in STDAA])
    table = np.where(letters < 0, _NO_SCORE, scores[:, letters].astype(np.int64))
    frequencies = np.zeros(table.shape)
    frequencies[:, [STDAA.index(letter) for letter in calibration.AMINO_ACIDS]] = probabilities(
        profile, calibration.BACKGROUND
    )
    sequence = bytes(STDAA.index(letter) for letter in PROTEIN.decode(profile.codes))
    title = f"{one_word(profile.identifier)} {profile.description}".strip()
    yield from _ASN.format(
        n_rows=len(STDAA), n=len(profile), unnamed=_UNNAMED, title=_quote(title), sequence=sequence.hex().upper(),
        frequencies=",\n        ".join(map(_real, frequencies.ravel().tolist())),
        scores=",\n        ".join(map(str, table.ravel().tolist())),
        constants=",\n      ".join(f"{name} {_real(value)}" for name, value in constants.items()),
        matrix=scoring.matrix.name, gap_open=scoring.gap_open, gap_extend=scoring.gap_extend,
    ).splitlines()  # fmt: skip


def _quote(text: str) -> str:
    """Return a string of ASN.1 text, which holds printable ASCII."""
    ascii_text = printable(text).encode("ascii", "replace").decode("ascii")
    return '"' + ascii_text.replace('"', '""') + '"'


def _real(value: float) -> str:
    """Return a number of ASN.1 text with 15 digits: mantissa, base and exponent."""
    mantissa, _, exponent = f"{value:.14e}".partition("e")
    digits = mantissa.replace(".", "").rstrip("0")
    return f"{{ {digits}, 10, {int(exponent) - len(digits) + 1} }}" if digits else "{ 0, 10, 0 }"
