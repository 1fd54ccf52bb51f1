"""benchmarks.agreement.blast_url: what it would say of clients that see something else."""

from __future__ import annotations

from benchmarks.agreement.blast_url import LEAST, Seen, differing, queries_of, seen_of

HIT = Seen("a", 100, "43.1", "1e-09", (1, 9, 2, 10), ("MKVLAAGIV", "MKVLAAGIV"))


def test_each_difference_is_counted_where_it_is() -> None:
    other = HIT._replace(subject="b")
    assert not any(differing([[HIT, other], []], [[HIT, other], []]).values())
    for known in ([HIT], [other, HIT], []):
        assert differing([[HIT, other]], [known]) == dict.fromkeys(Seen._fields[1:], 0) | {"hits": 1}
    for name, value in {"score": 99, "bit_score": "43", "evalue": "1e-08", "places": (1, 9, 2, 9)}.items():
        counts = differing([[HIT]], [[HIT._replace(**{name: value})]])
        assert {field for field, count in counts.items() if count} == {name}
    assert differing([[HIT]], [[HIT._replace(rows=("MKVLAAGIV", "MKVLAAGIL"))]])["rows"] == 1


def test_a_hit_of_json_lines_counts_from_1() -> None:
    stated = {
        "subject": {"id": "a"}, "score": 100, "bit_score": 43.1, "evalue": 1e-9, "query_start": 0, "query_end": 9,
        "subject_start": 1, "subject_end": 10, "query_row": "MKVLAAGIV", "subject_row": "MKVLAAGIV",
    }  # fmt: skip
    assert seen_of(stated) == HIT


def test_queries_are_the_same_each_time_and_have_lower_case() -> None:
    subjects = [("short", "MK"), ("long", "ACDEFGHIKLMNPQRSTVWY" * 10)]
    found = queries_of(subjects, 5)
    assert found == queries_of(subjects, 5)
    assert all(len(letters) >= LEAST and letters != letters.upper() != letters.lower() for _, letters in found)
