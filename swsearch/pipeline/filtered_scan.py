"""Subjects that filters leave out need not be scored, where leaving them out takes less time than scoring them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from swsearch.pipeline.database_loading import ChunkSource
from swsearch.pipeline.filters import Allowed
from swsearch.pipeline.options import SearchOptions

if TYPE_CHECKING:
    from swsearch.db import Database

SCORED_SHARE = 0.5
"""Subjects that may be hits are gathered and scored alone where they have less than this share of the residues: with
one query of 300 residues, the gathering of half of Swiss-Prot takes as long as the scoring of the other half."""


def scored_part(database: Database, allowed: Allowed | None, options: SearchOptions) -> ChunkSource:
    """Return what of a database must be scored: the subjects that may be hits, where they are less than half of it.

    E-values refer to the whole database all the same; what all scores are needed for takes all subjects.
    """
    if allowed is None or options.distribution or options.makes_profiles:
        return database
    if 2 * int(np.count_nonzero(allowed)) > database.n_subjects:
        return database  # what takes little to find out
    part = database.subset(allowed)
    return part if part.n_residues < SCORED_SHARE * database.n_residues else database
