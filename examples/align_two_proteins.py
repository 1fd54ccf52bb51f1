"""Align two proteins globally and write the alignment in several formats.

Human and chicken lysozyme C differ by one residue in length; the alignment shows where.

Run: python examples/align_two_proteins.py
"""

from __future__ import annotations

from typing import Any

import swsearch

HUMAN = (
    "P61626",
    "MKALIVLGLVLLSVTVQGKVFERCELARTLKRLGMDGYRGISLANWMCLAKWESGYNTRATNYNAGDRSTDYGIFQINSRYWCNDGKTPGAVNACHLSCSALLQDNIADAVACAK"
    "RVVRDPQGIRAWVAWRNRCQNRDVRQYVQGCGV",
)
CHICKEN = (
    "P00698",
    "MRSLLILVLCFLPLAALGKVFGRCELAAAMKRHGLDNYRGYSLGNWVCAAKFESNFNTQATNRNTDGSTDYGILQINSRWWCNDGRTPGSRNLCNIPCSALLSSDITASVNCAKK"
    "IVSDGNGMNAWVAWRNRCKGTDVQAWIRGCRL",
)


def main() -> Any:
    alignment = swsearch.align(HUMAN, CHICKEN, mode="global")
    print(f"score {alignment.score:.0f}")
    print(alignment)
    print(alignment.format("sam").strip())
    return alignment


if __name__ == "__main__":
    main()
