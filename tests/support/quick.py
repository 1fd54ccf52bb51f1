"""Choose how many cases of each test a quick run takes, from measured times: writes ``tests/quick.txt``.

    : > tests/quick.txt && pytest --durations=0 --durations-min=0.01 > times.txt
    python tests/support/quick.py times.txt

All cases of a test function may take `SECONDS` together. Of a longer one so many cases are taken as fit, at least
one; where a case takes over three times as long on the average, an exhaustive run has all of them.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

SECONDS = 0.33

_TIME = re.compile(r"([\d.]+)s (?:setup|call|teardown) +((\S+?::\w+).*)")


def choose(lines: Iterable[str], seconds: float) -> Iterator[str]:
    """Yield ``file::function count`` of functions that take longer, from the durations that pytest printed."""
    times: Counter[str] = Counter()
    cases: dict[str, set[str]] = defaultdict(set)
    for match in filter(None, map(_TIME.fullmatch, map(str.strip, lines))):
        times[match[3]] += float(match[1])
        cases[match[3]].add(match[2])
    for function in sorted(times):
        count = len(cases[function])
        if times[function] > 3 * seconds * count:
            yield f"{function} 0"
        elif count > 1 and times[function] > seconds:
            yield f"{function} {max(int(count * seconds / times[function]), 1)}"


if __name__ == "__main__":
    log = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    head = "# cases of long tests that a quick run takes; tests/support/quick.py writes this file"
    chosen = "\n".join([head, *choose(log, SECONDS)])
    Path(__file__).parents[1].joinpath("quick.txt").write_text(f"{chosen}\n", encoding="utf-8")
