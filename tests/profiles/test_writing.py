"""Profiles in other programs' formats: what stands there, and what is read of it again."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from swsearch.alphabet import PROTEIN
from swsearch.db.python_records import OpenFastaFile
from swsearch.errors import InputError
from swsearch.matrices import GAP_COSTS
from swsearch.options.kinds import QueryFormat
from swsearch.profiles import calibration, formats, hhm, json_profile, pssm, readers
from swsearch.profiles.calibration import calibrate
from swsearch.profiles.construction import DEFAULT_SETTINGS, UNSCALED, build_profile
from swsearch.profiles.formats import PROFILE_ENDINGS
from swsearch.profiles.hmm import HMMER_BACKGROUND, hmm_lines, read_hmm
from swsearch.profiles.profile import Profile
from swsearch.profiles.query_alignment import QueryAlignment
from swsearch.profiles.readers import read_alignments, read_profiles
from swsearch.profiles.text_lines import TextFile, parse
from swsearch.scoring import PositionGapCosts, Scoring

DATA = Path(__file__).parent / "data"
SCORING = Scoring()


def text_of_data(name: str) -> str:
    data = (DATA / name).read_bytes()
    return (gzip.decompress(data) if name.endswith(".gz") else data).decode("ascii")


def of_sequence(letters: str, name: str = "q") -> Profile:
    """The profile that a search makes of a query without relatives."""
    return build_profile(QueryAlignment.from_query(name, "", PROTEIN.encode(letters)), SCORING)


def of_family(scoring: Scoring = SCORING, scaled: bool = True) -> Profile:
    return build_profile(read_alignments(DATA / "sh3.sto")[0], scoring, DEFAULT_SETTINGS if scaled else UNSCALED)


def by_position(profile: Profile, costs: int | None = None) -> Profile:
    """A profile with gap costs of its own in each position, or the same ones everywhere."""
    generator = np.random.default_rng(3)
    n = len(profile)
    drawn = [generator.integers(0, 30, n) if costs is None else np.full(n, costs) for _ in range(4)]
    return replace(profile, gaps=PositionGapCosts(*(one.astype(np.int16) for one in drawn)))


PROFILES: dict[str, Callable[[], Profile]] = {
    "family": of_family,
    "family, published statistics": lambda: of_family(scaled=False),
    "one residue": lambda: of_sequence("W"),
    "one X": lambda: of_sequence("X"),
    "X and others": lambda: of_sequence("MKVXXXLLAWBZJUO"),
    "gap costs by position": lambda: by_position(of_family()),
    "gaps for nothing": lambda: by_position(of_family(), 0),
    "one residue with gap costs": lambda: by_position(of_sequence("W")),
    "of HMMER": lambda: Profile.read(DATA / "sh3.hmm.gz"),
    "of HH-suite": lambda: Profile.read(DATA / "sh3.hhm"),
    "of PSI-BLAST": lambda: Profile.read(DATA / "sh3.pssm"),
    "another matrix": lambda: of_family(Scoring("PAM70")),
    "a matrix that BLAST does not know": lambda: of_family(Scoring("PFASUM60")),
}


def unscaled(profile: Profile) -> np.ndarray:
    """The scores of the amino acids that other programs' formats are to hold."""
    return np.floor(formats.log_ratios(profile) / formats.unit_of(profile) + 0.5).astype(int)


def back(profile: Profile, path: Path) -> Profile:
    """A profile that was saved and read again, for a search with its matrix."""
    profile.save(path)
    return Profile.read(path, scoring=Scoring(formats.matrix_name(profile) or "BLOSUM62"))


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("ending", [".asn", ".smp", ".chk", ".pssm"])
def test_ncbis_formats_keep_the_scores_to_the_digit(name: str, ending: str, tmp_path: Path) -> None:
    """But for the scale, and for matrices that BLAST does not know, whose scores are rounded twice."""
    profile = PROFILES[name]()
    found = back(profile, tmp_path / f"q{ending}").scores[:, :20].astype(int)
    assert np.abs(found - unscaled(profile)).max() <= (1 if "does not know" in name else 0)


@pytest.mark.parametrize("name", PROFILES)
def test_hmms_keep_probabilities_to_five_digits_of_their_logarithm(name: str, tmp_path: Path) -> None:
    """Scores are one apart where they are rounded twice, or where those of a row do not make a sum of 1."""
    profile = PROFILES[name]()
    found = back(profile, tmp_path / "q.hmm")
    assert found.frequencies is not None
    wanted = formats.probabilities(profile, HMMER_BACKGROUND)
    assert np.abs(np.log(found.frequencies / wanted)).max() < 1.1e-5
    assert PROTEIN.decode(found.codes) == PROTEIN.decode(profile.codes)
    apart = np.abs(found.scores[:, :20].astype(int) - unscaled(profile))
    if profile.frequencies is not None:
        assert apart.max() <= 1
    assert (apart <= 1).mean() > 0.99


@pytest.mark.parametrize("name", ["of HMMER", "of HH-suite", "of PSI-BLAST"])
def test_hhms_without_an_alignment_keep_probabilities_to_a_thousandth_of_a_bit(name: str, tmp_path: Path) -> None:
    profile = PROFILES[name]()
    found = back(profile, tmp_path / "q.hhm")
    background = calibration.BACKGROUND if profile.background is None else profile.background
    assert found.frequencies is not None
    wanted = formats.probabilities(profile, background)
    assert np.abs(np.log2(found.frequencies / wanted)).max() < 0.0011
    assert "PCT   true\n" in (tmp_path / "q.hhm").read_text()


def numbers_of(model: str) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of match states and effective numbers of sequences of an HHM."""
    lines = model.splitlines()
    states = [k for k, line in enumerate(lines) if line[1:2] == " " and line[2:3].isdigit()]
    table = [[0 if word == "*" else 2 ** (-int(word) / 1000) for word in lines[k].split()[2:22]] for k in states]
    return np.array(table), np.array([int(lines[k + 1].split()[7]) / 1000 for k in states])


def test_an_hhm_of_an_alignment_is_what_hhmake_makes_of_it(tmp_path: Path) -> None:
    """Observed frequencies, which differ by the weights of sequences, and their effective number."""
    ours, theirs = "\n".join(hhm.hhm_lines(of_family())), text_of_data("sh3.hhm")
    assert "PCT" not in ours
    assert ("NEFF  3.1" in ours, "NEFF  3.1" in theirs) == (True, True)
    (emissions, diversity), (others, others_diversity) = numbers_of(ours), numbers_of(theirs)
    assert emissions.shape == others.shape
    assert np.abs(emissions - others).sum(axis=1).mean() < 0.03
    assert np.corrcoef(emissions.ravel(), others.ravel())[0, 1] > 0.997
    assert abs(diversity.mean() - others_diversity.mean()) < 0.2
    (tmp_path / "q.hhm").write_text(ours)
    read, wanted = Profile.read(tmp_path / "q.hhm"), Profile.read(DATA / "sh3.hhm")
    apart = np.abs(read.scores[:, :20].astype(int) - wanted.scores[:, :20])
    assert (apart <= 1).mean() > 0.92
    assert "\n>d3m0ra_\nGKELVLALYDYQEKSPDEVTMKKGDILTLLNSTNKDWWKVEVNDRQGFVPAAYVKKLD\n#\n" in ours


def test_an_hhm_of_one_sequence_has_one_sequence() -> None:
    lines = list(hhm.hhm_lines(of_sequence("MKVXLAW")))
    emissions, diversity = numbers_of("\n".join(lines))
    assert "NEFF  1.0" in lines
    assert "FILT  1 out of 1 sequences passed filter" in lines
    assert (diversity == 1).all()
    assert np.allclose(emissions[[0, 1, 2, 4, 5, 6]].max(axis=1), 1)
    assert emissions[3].max() < 0.1  # X


@pytest.mark.parametrize("name", [name for name in GAP_COSTS if name not in ("PFASUM60", "VTML200", "MATCHA")])
def test_scores_that_are_written_are_those_of_published_statistics(name: str) -> None:
    """Without the scale, a profile's log-odds are what a search with published statistics makes."""
    scoring = Scoring(name)
    text = TextFile.from_bytes("f", "\n".join(pssm.asn_lines(of_family(scoring))).encode())
    (found,) = pssm.read_asn(text, scoring)
    assert np.array_equal(found.scores[:, :20], of_family(scoring, scaled=False).scores[:, :20])
    assert (found.gap_open, found.gap_extend) == GAP_COSTS[name]
    assert found.identifier == "d3m0ra_"


def test_asn_has_blasts_constants_and_frequencies() -> None:
    profile = replace(of_family(), identifier="a b", description='the "first" \u03b1')
    text = "\n".join(pssm.asn_lines(profile))
    assert text.isascii()
    (node,) = parse(TextFile.from_bytes("f", text.encode()))
    data = node.node("pssm", "finalData")
    assert data is not None
    assert {name: data.node(name).items for name in ("lambda", "kappa", "h")} == {  # type: ignore[union-attr]
        "lambda": ["267", "10", "-3"], "kappa": ["41", "10", "-3"], "h": ["14", "10", "-2"],
    }  # fmt: skip
    (again,) = pssm.read_asn(TextFile.from_bytes("f", text.encode()), SCORING)
    assert (again.identifier, again.description) == ("a_b", 'the "first" ?')
    begin, end = text.index("    finalData {"), text.index("  params {")
    made = pssm.read_asn(
        TextFile.from_bytes("f", (text[:begin].rstrip().rstrip(",") + "\n  },\n" + text[end:]).encode()), SCORING
    )
    assert np.array_equal(made[0].scores[:, :20], unscaled(profile))  # of the frequencies alone


@pytest.mark.parametrize(("value", "expected"), [
    (0.0, "{ 0, 10, 0 }"), (1.0, "{ 1, 10, 0 }"), (0.267, "{ 267, 10, -3 }"), (1 / 3, "{ 333333333333333, 10, -15 }"),
    (120.0, "{ 12, 10, 1 }"), (1e-9, "{ 1, 10, -9 }"),
])  # fmt: skip
def test_numbers_of_asn(value: float, expected: str) -> None:
    assert pssm._real(value) == expected


def test_gap_costs_that_blast_does_not_know_become_its_own() -> None:
    text = "\n".join(pssm.asn_lines(of_family(Scoring("BLOSUM62", 20, 3))))
    assert ("gapOpen 11" in text, "gapExtend 1" in text) == (True, True)
    text = "\n".join(pssm.asn_lines(of_family(Scoring("BLOSUM62", 9, 2))))
    assert ("gapOpen 9" in text, "gapExtend 2" in text, "lambda { 279, 10, -3 }" in text) == (True, True, True)


def test_ascii_has_percentages_information_and_weights() -> None:
    lines = list(pssm.ascii_lines(of_family()))
    assert lines[-1] == "PSI Gapped           0.0410     0.2670"
    rows = np.array([[float(word) for word in line.split()[2:]] for line in lines[3:61]])
    assert np.abs(rows[:, 20:40].sum(axis=1) - 100).max() <= 4  # rounded
    tryptophan = "GKELVLALYDYQEKSPDEVTMKKGDILTLLNSTNKDWWKVEVNDRQGFVPAAYVKKLD".index("W")
    assert rows[tryptophan, 20 + pssm._NCBI_ORDER.index("W")] > 90
    assert (rows[:, 40] > 0).all()
    assert rows[:, 41].mean() > 0.05
    alone = [line.split()[22:] for line in list(pssm.ascii_lines(of_sequence("MKVW")))[3:7]]
    assert alone == [["0"] * 20 + ["0.00", "0.00"]] * 4  # psiblast has nothing where only the query is


def test_transitions_follow_from_gap_costs() -> None:
    n, unit = 58, calibration.lambda_of(SCORING.matrix)
    found = formats.transitions(of_family())
    assert found.shape == (n + 1, 7)
    for part in (slice(0, 3), slice(3, 5), slice(5, 7)):
        assert np.allclose(found[:, part].sum(axis=1), 1)
    assert np.allclose(found[1:n, 1:3] / found[1:n, :1], np.exp(-12 * unit))
    assert np.allclose(found[1:n, [4, 6]], np.exp(-unit))
    assert np.array_equal(found[[0, n]], [[1, 0, 0, 1, 0, 1, 0]] * 2)
    profile = by_position(of_family())
    assert profile.gaps is not None
    own = formats.transitions(profile)
    costs = profile.gaps.insertion_open[:-1] + profile.gaps.insertion_extend[:-1]
    assert np.allclose(-np.log(own[1:n, 1] / own[1:n, 0]) / unit, costs)
    costs = profile.gaps.deletion_open[1:] + profile.gaps.deletion_extend[1:]
    assert np.allclose(-np.log(own[1:n, 2] / own[1:n, 0]) / unit, costs)
    assert own[:, [3, 5]].min() >= 0.0099


def test_gap_costs_by_position_are_in_the_file_and_can_be_read(tmp_path: Path) -> None:
    """Costs that are read include the probability to leave a gap, which a search leaves out."""
    profile = by_position(of_family())
    profile.save(tmp_path / "q.hmm")
    text = TextFile.from_bytes("f", (tmp_path / "q.hmm").read_bytes())
    (found,) = read_hmm(text, SCORING, position_gaps=True)
    assert found.gaps is not None
    assert profile.gaps is not None
    usual = profile.gaps.insertion_extend[:-1] > 0
    apart = found.gaps.insertion_extend[:-1].astype(int) - profile.gaps.insertion_extend[:-1]
    assert np.abs(apart[usual]).max() <= 1
    assert np.corrcoef(found.gaps.insertion_open[:-1], profile.gaps.insertion_open[:-1])[0, 1] > 0.8


def test_a_model_is_calibrated_as_hmmbuild_does_it() -> None:
    """Lambda is a formula; locations are those of 200 random sequences, which vary by 0.1 and 0.2 bits."""
    lines = text_of_data("sh3.hmm.gz").splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("HMM ")) + 3

    def values(line: str, skipped: int, n: int) -> list[float]:
        return [0.0 if word == "*" else float(np.exp(-float(word))) for word in line.split()[skipped : skipped + n]]

    states = list(range(first + 2, len(lines) - 1, 3))
    emissions = np.empty((len(states), 20))
    emissions[:, formats.MODEL_PLACES] = [values(lines[k], 1, 20) for k in states]
    moves = np.array([values(lines[k], 0, 7) for k in (first + 1, *(k + 2 for k in states))])
    wanted = [[float(word) for word in line.split()[3:]] for line in lines if line.startswith("STATS")]
    found = calibrate(emissions, moves, HMMER_BACKGROUND)
    assert found.lambda_ == pytest.approx(wanted[0][1], abs=2e-4)  # probabilities have five digits there
    assert found.msv == pytest.approx(wanted[0][0], abs=0.4)
    assert found.viterbi == pytest.approx(wanted[1][0], abs=0.4)
    assert found.forward == pytest.approx(wanted[2][0], abs=0.8)
    assert found == calibrate(emissions, moves, HMMER_BACKGROUND)


@pytest.mark.parametrize("name", PROFILES)
def test_every_model_of_hmmer_is_whole(name: str) -> None:
    profile = PROFILES[name]()
    lines = list(hmm_lines(profile))
    statistics = [line.split() for line in lines if line.startswith("STATS LOCAL")]
    assert [words[2] for words in statistics] == ["MSV", "VITERBI", "FORWARD"]
    assert all(np.isfinite([float(word) for word in words[3:]]).all() for words in statistics)
    assert len([line for line in lines if line.startswith("DATE")]) == 0  # the same profile is the same file
    assert lines[-1] == "//"


def test_a_model_of_hmmer_that_is_saved_again_is_the_same(tmp_path: Path) -> None:
    first, again = tmp_path / "1.hmm", tmp_path / "2.hmm"
    Profile.read(DATA / "sh3.hmm.gz").save(first)
    Profile.read(first).save(again)
    rows = [
        [line.split()[1:21] for line in path.read_text().splitlines() if line[:7].strip().isdigit()]
        for path in (first, again)
    ]
    theirs = [line.split() for line in text_of_data("sh3.hmm.gz").splitlines()]
    rows.append([words[1:21] for words in theirs if len(words) == 26 and words[0].isdigit()])
    ours, same, original = (np.array(one, dtype=float) for one in rows)
    assert np.abs(ours - same).max() <= 2e-5
    assert np.abs(ours - original).max() <= 3e-5


@pytest.mark.parametrize("path", ["q.txt", "q", "q.asn.gz", "q.mtx", "hmm", ".hmm", "q.hmm/"])
def test_other_endings_are_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"expected a format of profiles; choose a name that ends in .json or .jsonl"
    ):
        json_profile.save(of_sequence("MKV"), f"{tmp_path}/{path}" if path != "q.hmm/" else f"{tmp_path}/q.hmm/x")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [ending for ending, format_ in PROFILE_ENDINGS.items() if format_ != "json"])
def test_what_a_format_cannot_hold_is_refused(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"Q{ending.upper()}"
    profile = of_sequence("MKV")
    if ending == ".hmm":
        json_profile.save([profile, of_sequence("WW", "r")], path)
        assert [one.identifier for one in read_profiles(path)] == ["q", "r"]
        path.unlink()
    else:
        with pytest.raises(
            InputError, match=r"got 2 profiles, expected one in a file of .*; save them as .jsonl or .hmm"
        ):
            json_profile.save([profile, profile], path)
    with pytest.raises(InputError, match="profile q: has no positions"):
        json_profile.save(of_sequence(""), path)
    with pytest.raises(InputError, match="profile q: lambda_ is None"):
        json_profile.save(replace(profile, lambda_=None), path)
    assert not list(tmp_path.iterdir())


def test_every_format_that_is_written_is_read_by_its_name() -> None:
    written: set[QueryFormat] = set(PROFILE_ENDINGS.values())
    assert written == set(json_profile._WRITERS)
    for format_ in written:
        (found,) = read_profiles_of("".join(json_profile.lines_of(of_family(), format_)))
        assert len(found) == 58


def read_profiles_of(text: str) -> list[Profile]:
    source = OpenFastaFile(io.BytesIO(text.encode()), "f")
    return readers.profiles_of(source, formats.detect_format(source), SCORING)
