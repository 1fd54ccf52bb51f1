"""Shipped matrices: names, default gap costs and presets."""

from __future__ import annotations

from swsearch.options.kinds import SearchPreset

BLASTP_MATRICES = ("BLOSUM45", "BLOSUM50", "BLOSUM62", "BLOSUM80", "BLOSUM90", "PAM30", "PAM70", "PAM250")
"""Matrices that are shipped as blastp scores them."""

GAP_COSTS = {
    "BLOSUM45": (14, 2),
    "BLOSUM50": (13, 2),
    "BLOSUM62": (11, 1),
    "BLOSUM80": (10, 1),
    "BLOSUM90": (10, 1),
    "PAM30": (9, 1),
    "PAM70": (10, 1),
    "PAM250": (14, 2),
    "PFASUM60": (15, 1),
    "VTML200": (14, 1),
    "MATCHA": (15, 3),
}
"""Gap costs (open, extend) of each matrix that is shipped, where none are asked for: blastp's own defaults, for
PFASUM60 and VTML200 what found most in SCOPe (benchmarks/results/preset.txt), and for MATCHA those of its authors,
whose 18/3 of MMseqs2 are 15/3 here."""

MATRIX_ALPHABETS = {"MATCHA": "tea"}
"""Alphabets of matrices that are shipped, where they are not of amino acids."""

ALPHABET_MATRICES = {alphabet: name for name, alphabet in MATRIX_ALPHABETS.items()}
"""The shipped matrix of each alphabet that is not of amino acids, if there is one."""

FALLBACK_GAP_COSTS = GAP_COSTS["BLOSUM62"]
"""Gap costs of any other matrix, about which nothing is known."""

PRESET_MATRICES: dict[SearchPreset, str] = {
    "default": "BLOSUM62", "sensitive": "PFASUM60", "short": "PAM30", "context": "PFASUM60",
}  # fmt: skip
"""The matrix of each preset, whose gap costs are those of `GAP_COSTS`."""

SHORT_EVALUE = 20000.0
"""Largest E-value of a hit of a peptide, where none is asked for: what BLAST's library has for its task blastp-short,
since a perfect match of eight residues may have an E-value of hundreds in a large database."""
