import pytest

from swsearch.errors import OptionError
from swsearch.options.kinds import ByteSize, Integer, Percentage, Real


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("500", 500), (" 7 ", 7), ("-5", -5), ("+5", 5), ("1e9", 10**9), ("1E9", 10**9), ("5M", 5_000_000),
        ("5m", 5_000_000), ("2k", 2_000), ("5G", 5 * 10**9), ("1T", 10**12), ("1.5M", 1_500_000),
        ("1,000,000", 10**6), ("1_000_000", 10**6), ("10.0", 10), ("10.", 10), (".5k", 500), ("000123", 123),
        ("1e18", 10**18),
    ],
)  # fmt: skip
def test_whole_numbers_as_people_write_them(text, number):
    found = Integer().parse("top", text)
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
    with pytest.raises(OptionError, match="expected a whole number of at most 18 digits"):
        Integer().parse("top", text)


def test_a_range():
    kind = Integer(1, 9, "a whole number from 1 to 9")
    assert kind.check("top", kind.parse("top", "9")) == 9
    for text in ("0", "10", "1k"):
        with pytest.raises(OptionError, match="expected a whole number from 1 to 9"):
            kind.check("top", kind.parse("top", text))


@pytest.mark.parametrize(
    ("text", "number"), [("10", 10.0), ("1e-5", 1e-5), (".5", 0.5), ("1,000.5", 1000.5), ("-2", -2.0), ("0", 0.0)]
)
def test_numbers(text, number):
    assert Real().parse("evalue", text) == number


@pytest.mark.parametrize("text", ["", "inf", "-inf", "nan", "1e400", "1e-400", "1e99999", "low", "0.1.2", "1M"])
def test_what_is_no_number(text):
    with pytest.raises(OptionError, match="expected a number, such as 10"):
        Real().parse("evalue", text)


def test_percentages_with_and_without_their_sign():
    assert [Percentage().parse("min_identity", text) for text in ("50", "50%", "0.5 %")] == [50, 50, 0.5]
    for text in ("", "%", "half", "inf"):
        with pytest.raises(OptionError, match="expected a percentage, 0 to 100"):
            Percentage().parse("min_identity", text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("512M", 512 << 20), ("2g", 2 << 30), ("1.5K", 1536), ("64MiB", 64 << 20), ("64MB", 64 << 20)],
)
def test_sizes(text, size):
    assert ByteSize().parse("memory", text) == size


@pytest.mark.parametrize("text", ["", "M", "-1G", "0", "lots", "5X"])
def test_bad_sizes(text):
    with pytest.raises(OptionError, match=r"memory: got .* expected a size such as 512M"):
        ByteSize().parse("memory", text)
