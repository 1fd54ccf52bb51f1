"""A small taxonomy as NCBI gives it out, made up, and sequences of its taxa."""

from __future__ import annotations

from pathlib import Path

NODES = [
    (1, 1, "no rank"),
    (131567, 1, "cellular root"),
    (2, 131567, "domain"),
    (2759, 131567, "domain"),
    (40674, 2759, "class"),
    (9443, 40674, "order"),
    (9606, 9443, "species"),
    (63221, 9606, "subspecies"),
    (9598, 9443, "species"),
    (10090, 40674, "species"),
    (562, 2, "species"),
    (83333, 562, "strain"),
    (1423, 2, "species"),
]
"""Taxid, the one above it, and rank. No subject is of 1423."""

NAMES = [
    (1, "root", "scientific name"),
    (2, "Bacteria", "scientific name"),
    (2, "eubacteria", "blast name"),
    (2759, "Eukaryota", "scientific name"),
    (40674, "Mammalia", "scientific name"),
    (40674, "mammals", "blast name"),
    (9443, "Primates", "scientific name"),
    (9443, "primates", "blast name"),
    (9606, "Homo sapiens", "scientific name"),
    (9606, "human", "genbank common name"),
    (9606, "man", "common name"),
    (63221, "Homo sapiens neanderthalensis", "scientific name"),
    (9598, "Pan troglodytes", "scientific name"),
    (9598, "chimpanzee", "common name"),
    (10090, "Mus musculus", "scientific name"),
    (10090, "house mouse", "genbank common name"),
    (562, "Escherichia coli", "scientific name"),
    (83333, "Escherichia coli K-12", "scientific name"),
    (1423, "Bacillus subtilis", "scientific name"),
]

MERGED = [(9605777, 9606), (666, 9605777), (777, 1423)]
"""The second was merged into one that was merged itself; of the third's new one there is no subject."""

SEQUENCE = "MKVLAAGIVGWWHEAGAWGHEEPQSDPSVEPPLSQETFSDLWKLLPENNVLSPLPSQAMDDLMLSPDDIEQWFTED"

SUBJECTS = [
    ("sp|P00001|A_HUMAN first OS=Homo sapiens OX=9606 GN=A", 9606),
    ("sp|P00002|A_MOUSE second OS=Mus musculus OX=10090 GN=A", 10090),
    ("UniRef90_P00003 third n=1 Tax=Homo sapiens neanderthalensis TaxID=63221 RepID=X", 63221),
    ("P00004 nothing is known of its taxon", 0),
    ("P00005 OX=83333", 83333),
    ("P00006.2 OX=9598 PE=1", 9598),
    ("P00007 OX=12345 unknown", 12345),
    ("P00008 OX=4242 unknown", 4242),
]
"""Header lines, and the taxid that each says; 0 for none."""


def dump(rows: list[tuple[object, ...]]) -> str:
    """Write rows as NCBI's dumps have them."""
    return "".join("\t|\t".join(map(str, row)) + "\t|\n" for row in rows)


def write_taxonomy(folder: Path) -> Path:
    """Write all of the taxonomy's files into a folder that is made."""
    folder.mkdir()
    (folder / "nodes.dmp").write_text(dump([(*row, "XX", 0) for row in NODES]))
    (folder / "names.dmp").write_text(dump([(taxid, name, "", kind) for taxid, name, kind in NAMES]))
    (folder / "merged.dmp").write_text(dump(list(MERGED)))
    return folder


def write_subjects(path: Path) -> Path:
    """Write the sequences as FASTA: all alike, but each a residue shorter than the one before."""
    lines = [f">{header}\n{SEQUENCE[: len(SEQUENCE) - place]}\n" for place, (header, _) in enumerate(SUBJECTS)]
    path.write_text("".join(lines))
    return path
