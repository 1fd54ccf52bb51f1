"""What CUDASW++4.0 reaches, which `gpu.py`'s report and plot set beside ours. Measured apart: nothing runs here.

CUDASW++4.0 built from source, with ``--dpx``, which is faster than its default; one NVIDIA H200, as ours, and the
same Swiss-Prot of 2014. Figures by length are those of its second run: its first query is cold
(565 GCUPS at 144 residues), so that no figure of 144 is quoted.
"""

from __future__ import annotations

CUDASW_MEASURED = "NVIDIA H200, November 2026, Swiss-Prot of 186,717,374 residues"

CUDASW = {
    51: 2612, 146: 3430, 151: 3447, 189: 3584, 222: 3661, 250: 3681, 300: 3751, 375: 3822, 464: 3885, 567: 3920,
    657: 3938, 850: 3979, 1000: 4007, 1500: 4030, 2005: 4060, 2504: 4071, 3005: 4085, 3564: 4082, 4061: 4104,
    4548: 3921, 4743: 4089, 5147: 3905, 5478: 3926,
}  # fmt: skip
"""Kernel GCUPS by query length."""

CUDASW_BATCH, CUDASW_BATCH_SECONDS = 3915, 1.99
"""GCUPS and seconds of its scan of the 20 queries, which it takes one after the other."""

CUDASW_COMMAND = 2.86
"""Seconds of its whole command on an H100, the same processor with less memory: scores of the ten best, no E-values,
no alignments."""

CLOSE = 0.02
"""A length of theirs stands beside one of ours if they differ by no more than this share: 146 beside 144."""


def cudasw_length(length: int) -> int | None:
    """Return the length of theirs that is compared with one of ours; None if there is none so close."""
    nearest = min(CUDASW, key=lambda other: abs(other - length))
    return nearest if abs(nearest - length) <= CLOSE * length else None


def cudasw_cell(length: int) -> str:
    """Format its GCUPS, with its length where that is another."""
    other = cudasw_length(length)
    if other is None:
        return ""
    return f"{CUDASW[other]:,}" + ("" if other == length else f" ({other})")
