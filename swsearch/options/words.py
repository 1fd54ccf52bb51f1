"""Choices of options, as types."""

from __future__ import annotations

from typing import Literal, get_args

Mode = Literal["local", "global", "semiglobal"]
"""Alignment mode: local (Smith-Waterman), global (Needleman-Wunsch) or semiglobal (end gaps are free)."""

MODES: tuple[Mode, ...] = get_args(Mode)

Preset = Literal["default", "sensitive", "short"]
"""Matrix and gap costs for a purpose: ``default`` as blastp, ``sensitive`` for distant homologs
(benchmarks/results/preset.txt), ``short`` as blastp-short, for peptides."""

PRESETS: tuple[Preset, ...] = get_args(Preset)

SearchTask = Literal["default", "short"]
"""``short`` combines the preset and the E-value threshold of blastp-short."""

JobState = Literal["queued", "running", "done", "failed", "cancelled"]
"""State of a job on a server."""

JOB_STATES: tuple[JobState, ...] = get_args(JobState)

AlphabetName = Literal["protein", "dna"]
"""Alphabet of sequences."""

Mask = Literal["none", "lower", "tantan"]
"""Residues that are masked: none, those in lower case, or low complexity."""

MASKS: tuple[Mask, ...] = get_args(Mask)

SubjectMask = Literal["database", "none", "lower", "tantan"]
"""Mask of subjects; ``database`` is the mask that the database was built with."""

SortKey = Literal["evalue", "score"]
"""Order of hits: by E-value, or by score."""

StatisticsMethod = Literal["auto", "published", "fitted", "none"]
"""Source of E-values. ``published``: BLAST's Karlin-Altschul constants; ``fitted``: shuffled sequences
(`swsearch.statistics.fitted`); ``auto``: fitted, in every mode."""

Strand = Literal["both", "plus", "minus"]
"""Strands of DNA that are translated."""

PairsKind = Literal["one", "order", "all"]
"""Pairs to align: the only two sequences, the i-th of one input with the i-th of the other, or every combination."""

QueryFormat = Literal[
    "auto", "fasta", "a3m", "fasta-aligned", "stockholm", "clustal", "pssm", "asn", "hmm", "hhm", "json"
]
"""Format of a query file; ``auto`` recognizes it by its content."""

QUERY_FORMATS: tuple[QueryFormat, ...] = get_args(QueryFormat)

OnDuplicate = Literal["error", "skip", "keep"]
"""What happens to records with the same identifier: refuse them, keep the first, or keep all."""

EngineChoice = Literal["auto", "gpu", "cpu", "reference"]
"""Engine; ``reference`` is the slow oracle for tests."""

ENGINES: tuple[EngineChoice, ...] = get_args(EngineChoice)

ProgressKind = Literal["auto", "bar", "lines", "json", "none"]
"""Style of progress reports on stderr."""
