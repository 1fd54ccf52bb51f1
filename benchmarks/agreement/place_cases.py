"""Where `benchmarks.agreement.places` searches, and what it asks for."""

from __future__ import annotations

from typing import NamedTuple

ADDRESS = "ADDRESS"
"""Stands for the scheduler's in a place's options."""


class Place(NamedTuple):
    """Where a search runs.

    Parameters
    ----------
    name : str
        As the table has it.
    subjects : str
        ``one`` file, the ``manifest`` of its volumes, or a ``list`` of them.
    options : str
        Of the command.
    needs : str
        Words: ``workers``, ``gpu`` or ``gpus``; or nothing.
    """

    name: str
    subjects: str
    options: str
    needs: str = ""


class Case(NamedTuple):
    """A search or alignment that every place runs.

    Parameters
    ----------
    name : str
        Name in the table.
    options : str
        Options of the command.
    queries : str
        ``all``, or the ``few`` shortest.
    is_align : bool
        Whether the command aligns pairs instead of searching.
    """

    name: str
    options: str
    queries: str = "few"
    is_align: bool = False


MANY = "--query-mask tantan --subject-mask lower --max-alignments 3 --min-identity 25 --min-query-coverage 10"

PLACES = [
    Place("one file", "one", "--engine cpu"),
    Place("4 volumes", "manifest", "--engine cpu"),
    Place("4 databases", "list", "--engine cpu"),
    Place("1 worker", "manifest", "--engine cpu --cluster local:1", "workers"),
    Place("2 workers", "manifest", "--engine cpu --cluster local:2", "workers"),
    Place("4 workers", "manifest", "--engine cpu --cluster local:4", "workers"),
    Place("2 workers, one file", "one", "--engine cpu --cluster local:2", "workers"),
    Place("2 workers, 4 databases", "list", "--engine cpu --cluster local:2", "workers"),
    Place("scheduler, 2 workers", "manifest", f"--engine cpu --cluster {ADDRESS}", "workers"),
    Place("GPU", "one", "--engine gpu", "gpu"),
    Place("GPU twice", "one", "--engine gpu --device 0,0", "gpu"),
    Place("GPU twice, 4 volumes", "manifest", "--engine gpu --device 0,0", "gpu"),
    Place("GPU twice, streamed", "one", "--engine gpu --device 0,0 --gpu-memory 160M", "gpu"),
    Place("GPU, 1 worker", "manifest", "--engine gpu --cluster local:1", "gpu workers"),
    Place("GPU, 2 workers", "manifest", "--engine gpu --cluster local:2", "gpu workers"),
    Place("all GPUs", "one", "--engine gpu --device all", "gpus"),
    Place("all GPUs, streamed", "manifest", "--engine gpu --device all --gpu-memory 160M", "gpus"),
]
"""The first one says what is right."""

CASES = [
    Case("published", "--statistics published", "all"),
    Case("fitted", "--statistics fitted", "all"),
    Case("masks, filters, several alignments, published", f"--statistics published {MANY}", "all"),
    Case("masks, filters, several alignments, fitted", f"--statistics fitted {MANY}", "all"),
    Case("masks of lower case", "--query-mask lower --subject-mask lower"),
    Case("masks of lower case, published", "--query-mask lower --subject-mask lower --statistics published"),
    Case("mask tantan", "--query-mask tantan --subject-mask none"),
    Case("filters", "--min-identity 40 --min-query-coverage 30 --min-subject-coverage 30 --min-score 60"),
    Case("identifiers, only", "--include-ids ids.txt"),
    Case("identifiers, but", "--exclude-ids ids.txt --statistics published"),
    Case("several alignments", "--max-alignments 4 --max-hits 30"),
    Case("several alignments, published", "--max-alignments 4 --max-hits 30 --statistics published"),
    Case("by score", "--sort score --max-hits 40"),
    Case("no statistics", "--statistics none --max-hits 25"),
    Case("ties, 7 hits", "--max-hits 7 --statistics published"),
    Case("ties, 1 hit", "--max-hits 1"),
    Case("global", "--mode global --max-hits 20"),
    Case("global, no statistics", "--mode global --max-hits 20 --statistics none"),
    Case("semiglobal", "--mode semiglobal --max-hits 20"),
    Case("size of the database", "--dbsize 5000000000 --evalue 0.001"),
    Case("other scores", "--preset sensitive --gap-open 12 --max-hits 50"),
    Case("two iterations", "--iterations 2 --max-hits 50"),
    Case("pairs, local", "--mode local --outfmt sam", "all", is_align=True),
    Case("pairs, global", "--mode global --outfmt jsonl", "all", is_align=True),
    Case("pairs, scores", "--mode semiglobal --score-only --outfmt score", "all", is_align=True),
]
