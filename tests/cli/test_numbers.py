import pytest

from swsearch.cli.numbers import Refused, percentage, real, whole


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("500", 500),
        (" 7 ", 7),
        ("-5", -5),
        ("+5", 5),
        ("1e9", 10**9),
        ("1E9", 10**9),
        ("5M", 5_000_000),
        ("5m", 5_000_000),
        ("2k", 2_000),
        ("5G", 5 * 10**9),
        ("1T", 10**12),
        ("1.5M", 1_500_000),
        ("1,000,000", 10**6),
        ("1_000_000", 10**6),
        ("10.0", 10),
        ("10.", 10),
        (".5k", 500),
        ("000123", 123),
        ("1e18", 10**18),
    ],
)
def test_whole_numbers_as_people_write_them(text, number):
    found = whole()(text)
    assert (found, type(found)) == (number, int)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "inf", "nan", "-inf", "1e400", "1e99999999999", "1" + "0" * 23, "1" * 5000, "2e18", "1e-3", "1.5"),
        *("1,5", "1,00", "1,0000", "1__0", "_1", "1 000", "0x10", "5X", "5MB", "M", ".", "e9", "1e", "--5", "five"),
        "\N{FULLWIDTH DIGIT ONE}",
    ],
)
def test_what_is_no_whole_number(text):
    with pytest.raises(Refused, match="expected a whole number of at most 18 digits"):
        whole()(text)


def test_a_range_and_a_default():
    parse = whole("a whole number from 1 to 9", 1, 9)
    assert parse("9") == 9
    for text in ("0", "10", "1k"):
        with pytest.raises(Refused, match="expected a whole number from 1 to 9"):
            parse(text)
    assert parse(500) == 500  # what is declared as the default is not read


@pytest.mark.parametrize(
    ("text", "number"), [("10", 10.0), ("1e-5", 1e-5), (".5", 0.5), ("1,000.5", 1000.5), ("-2", -2.0), ("0", 0.0)]
)
def test_numbers(text, number):
    assert real()(text) == number


@pytest.mark.parametrize("text", ["", "inf", "-inf", "nan", "1e400", "1e-400", "1e99999", "low", "0.1.2", "1M"])
def test_what_is_no_number(text):
    with pytest.raises(Refused, match="expected a number, such as 10"):
        real()(text)


def test_percentages_with_and_without_their_sign():
    assert [percentage(text) for text in ("50", "50%", "0.5 %", 50.0)] == [50, 50, 0.5, 50]
    for text in ("", "%", "half", "inf"):
        with pytest.raises(Refused, match="expected a percentage, 0 to 100"):
            percentage(text)
