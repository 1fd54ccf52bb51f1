"""Saved profiles, read back unchanged, and rejected files: from other programs, later versions or partial writes."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from swsearch.alphabet import PROTEIN
from swsearch.errors import InputError, OptionError, OutputError
from swsearch.profiles import json_profile
from swsearch.profiles.profile import Profile
from swsearch.profiles.query_alignment import GAP, QueryAlignment
from swsearch.profiles.readers import read_profiles
from swsearch.scoring import PositionGapCosts

DATA = Path(__file__).parent / "data"


def as_plain(value: object) -> object:
    """Convert arrays, and objects that hold them, to plain values that compare."""
    if isinstance(value, (Profile, QueryAlignment, PositionGapCosts)):
        return {each.name: as_plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, np.ndarray):
        return value.dtype.str, np.nan_to_num(value, nan=-7.0).tolist()
    return list(value) if isinstance(value, (list, tuple)) else value


def whole_profile() -> Profile:
    """A profile that has all there is, and an alignment with a stop between columns."""
    generator = np.random.default_rng(5)
    codes = PROTEIN.encode("MKV*X")
    columns = np.stack([codes, np.array([GAP, 11, GAP, 26, 0], dtype=np.uint8)])
    alignment = QueryAlignment(
        ["q|1 ", "s\t2"], ['of "the" first', ">\u2028 second"], columns,
        starts=np.array([0, 7]), ends=np.array([5, 14]),
        insertions=np.array([[1, 0, 0, 1], [1, 3, 1, 3], [1, 5, 3, 4]]), inserted=PROTEIN.encode("A*WU"),
        subjects=np.array([-1, 3]), evalues=np.array([0.0, np.nan]), iterations=np.array([0, 2]),
    )  # fmt: skip
    frequencies = generator.dirichlet(np.ones(20), size=5)
    return Profile(
        "q|1 ", "the first", codes, generator.integers(-127, 128, (5, 27)), 11, 1, PositionGapCosts.uniform(5, 7, 2),
        frequencies[0], frequencies, "made up", alignment, 3, 0.31760595763580185,
    )  # fmt: skip


@pytest.mark.parametrize(
    "profile",
    [
        whole_profile(),
        replace(whole_profile(), gaps=None, background=None, frequencies=None, alignment=None, lambda_=None),
        replace(whole_profile(), gap_open=None, gap_extend=None),
    ],
)
def test_what_is_saved_is_read_as_it_was(profile: Profile, tmp_path: Path) -> None:
    profile.save(tmp_path / "p.json")
    text = (tmp_path / "p.json").read_bytes()
    assert text.isascii()
    assert text.count(b"\n") == 1
    assert as_plain(Profile.read(tmp_path / "p.json")) == as_plain(profile)


def test_one_of_an_alignment_goes_on(tmp_path: Path) -> None:
    profile = Profile.read(DATA / "sh3.sto")
    profile.save(tmp_path / "p.jsonl")
    again = Profile.read(tmp_path / "p.jsonl")
    assert as_plain(again) == as_plain(profile)
    assert again.alignment is not None
    assert len(again.alignment) == 11


def test_several_are_saved_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    profiles = [whole_profile(), Profile.read(DATA / "sh3.hhm")]
    json_profile.save(profiles, path)
    assert [as_plain(one) for one in read_profiles(path)] == [as_plain(one) for one in profiles]
    with pytest.raises(InputError, match="holds 2 profiles, expected one"):
        Profile.read(path)
    with pytest.raises(InputError, match="got no profile to save"):
        json_profile.save([], path)
    with pytest.raises(OptionError, match=r"profiles: got 5, expected a swsearch.Profile"):
        json_profile.save([5], path)  # type: ignore[list-item]


def test_a_file_that_cannot_be_written_is_told_and_left_alone(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="does not exist"):
        whole_profile().save(tmp_path / "no" / "p.json")
    (tmp_path / "p.json").write_text("before")
    with pytest.raises(TypeError):
        replace(whole_profile(), source=3j).save(tmp_path / "p.json")  # type: ignore[arg-type]
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("version", 2, "version 2 of the form of profiles, expected 1; a later swsearch wrote it"),
        ("version", 0, "version 0 of the form of profiles, expected 1$"),
        ("version", None, "version: got None"),
        ("letters", "ACD", "letters: got 'ACD'"),
        ("sequence", "MKV", r"scores: got .* expected numbers of shape \(3, 27\)"),
        ("sequence", "MK1*X", "'1' is a digit"),
        ("scores", [[200] * 27] * 5, "scores: got a list, expected whole numbers from -127 to 127"),
        ("scores", [[0.5] * 27] * 5, "expected whole numbers"),
        ("scores", "x", "scores: got 'x'"),
        ("gap_open", -1, "gap_open: got -1, expected a whole number from 0"),
        ("gaps", {"deletion_open": [1]}, "deletion_open"),
        ("gaps", [], "gaps: got .*, expected an object, or null"),
        ("frequencies", [[None] * 20] * 5, "frequencies: got a list, expected numbers >= 0"),
        ("lambda", "x", "lambda"),
        ("identifier", 5, "identifier: got 5, expected a text"),
        ("iteration", True, "iteration: got True"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(name: str, value: object, expected: str, tmp_path: Path) -> None:
    line = json.loads(json_profile.to_json_line(whole_profile()))
    (tmp_path / "p").write_text("\n" + json.dumps({**line, name: value}))
    with pytest.raises(InputError, match=rf"p: line 2: .*{expected}"):
        Profile.read(tmp_path / "p")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("a3m", ["MKV*X"], "a3m: got .*, expected a list of 2 texts"),
        ("a3m", ["MKV*X", "MK"], "rows of A3M with 5 columns"),
        ("a3m", ["AKV*X", "MKV*X"], "the profile's sequence first"),
        ("descriptions", [1, 2], "descriptions"),
        ("starts", [0.5, 1], "starts: got .*, expected whole numbers"),
        ("identifiers", [], "a3m"),
    ],
)  # fmt: skip
def test_a_wrong_alignment_is_named(name: str, value: object, expected: str, tmp_path: Path) -> None:
    line = json.loads(json_profile.to_json_line(whole_profile()))
    line["alignment"][name] = value
    (tmp_path / "p").write_text(json.dumps(line))
    with pytest.raises(InputError, match=rf"p: line 1: .*{expected}"):
        Profile.read(tmp_path / "p")
