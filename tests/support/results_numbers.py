"""Numbers in the README and the documentation, held against the committed results that they come from."""

import re

from conftest import ROOT

NUMBER = r"\d[\d,]*\.?\d*"

NAMES = {"36"}
"""Numbers that are part of a name: ssearch36."""


def unknown_numbers(text, files):
    """Return the numbers of a text that stand in none of the results, as they are or rounded to one decimal."""
    results = "".join((ROOT / "benchmarks" / "results" / f"{name}.txt").read_text(encoding="utf-8") for name in files)
    # with or without thousands separators: results have both
    known = {number.replace(",", "") for number in re.findall(NUMBER, results)} | NAMES
    known |= {f"{float(number):.1f}" for number in known if re.fullmatch(r"\d+\.\d+", number)}
    found = [number.rstrip(".,").replace(",", "") for number in re.findall(NUMBER, text)]
    return [number for number in found if number not in known], len(found)
