"""What a profile's alignment says of a database: which of its subjects are in it, and since when."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from swsearch.blocks import IntArray

if TYPE_CHECKING:
    from swsearch.db import Database
    from swsearch.inputs import Query
    from swsearch.profiles.alignment import QueryAlignment
    from swsearch.profiles.profile import Profile


def next_iteration(profile: Profile | None) -> int:
    """Return the number of the search that has a profile as its query."""
    return 1 if profile is None else profile.iteration + 1


def subjects_of(alignment: QueryAlignment) -> IntArray:
    """Return the places in the database of what an alignment holds, ascending, each once; shape (n,), int64."""
    return np.unique(alignment.subjects[alignment.subjects >= 0])


def first_found(subjects: IntArray, profile: Profile | None) -> IntArray:
    """Return the iteration that first included each subject in a profile.

    Parameters
    ----------
    subjects : ndarray, shape (n,), int64
        Places in the database.
    profile : Profile or None
        What found them, of a query that was `localized`.

    Returns
    -------
    ndarray, shape (n,), int64
        The iteration that found them, where none before did.
    """
    iteration = next_iteration(profile)
    found = np.full(len(subjects), iteration, dtype=np.int64)
    if profile is not None and profile.alignment is not None:
        known = profile.alignment
        of_subject = dict(zip(known.subjects.tolist(), known.iterations.tolist(), strict=True))
        of_subject.pop(-1, None)
        for row, subject in enumerate(subjects.tolist()):
            found[row] = of_subject.get(subject, iteration)
    return found


def localized(query: Query, database: Database) -> Query:
    """Return a query whose profile names as subjects only what is in this database, at the same place."""
    profile = query.profile
    alignment = None if profile is None else profile.alignment
    if profile is None or alignment is None:
        return query
    places = alignment.subjects.copy()
    for row in np.flatnonzero(places >= 0).tolist():
        place = int(places[row])
        if place >= database.n_subjects or database.identifier(place) != alignment.identifiers[row]:
            places[row] = -1
    if np.array_equal(places, alignment.subjects):
        return query
    return replace(query, profile=replace(profile, alignment=replace(alignment, subjects=places)))
