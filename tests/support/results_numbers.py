"""Numbers in the README and the documentation, held against the committed results that they come from."""

import re

from conftest import ROOT

NUMBER = r"\d[\d,]*\.?\d*"

NAMES = {"36"}
"""Numbers that are part of a name: ssearch36."""


MEASURED = re.compile(r"GCUPS|\bseconds?\b|\bms\b|milliseconds|\d s\b|MiB|E <= |compared|cells (?:a|per) cycle")
"""Pattern that marks a table of measurements."""


def measured_in(section):
    """Return what a section says was measured: tables but for their first column, which names it, and prose."""
    tables = [table for table in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE) if MEASURED.search(table)]
    cells = [cell for table in tables for line in table.splitlines() for cell in line.split("|")[2:]]
    prose = re.sub(r"^```.*?^```$", "", section, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^(\||    ).*$|`[^`\n]*`", "", prose, flags=re.MULTILINE)
    percent = r"\s?%" if "benchmarks/results/" in section else r"\s%"
    return [*cells, *re.findall(rf"\d[\d,.]*(?:\s(?:GCUPS|ms\b|s\b|TCUPS)|{percent})", prose)]


def check_sections(text, name):
    """Check every number that a page's sections say was measured; return how many stand in the linked results."""
    checked = 0
    for section in text.split("\n## "):
        files = sorted(set(re.findall(r"benchmarks/results/(\w+)\.txt\)", section)))
        unknown, count = unknown_numbers(" ".join(measured_in(section)), files)
        assert not unknown, f"{name}, {section.partition(chr(10))[0]}: {unknown} are not in {files}"
        checked += count
    return checked


def unknown_numbers(text, files):
    """Return the numbers of a text that stand in none of the results, as they are or rounded to one decimal."""
    results = "".join((ROOT / "benchmarks" / "results" / f"{name}.txt").read_text(encoding="utf-8") for name in files)
    # with or without thousands separators: results have both
    known = {number.replace(",", "") for number in re.findall(NUMBER, results)} | NAMES
    known |= {f"{float(number):.1f}" for number in known if re.fullmatch(r"\d+\.\d+", number)}
    found = [number.rstrip(".,").replace(",", "") for number in re.findall(NUMBER, text)]
    return [number for number in found if number not in known], len(found)
