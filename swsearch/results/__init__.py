"""What a search gives back: one result per query, with its hits, as objects and as columns."""

from swsearch.results.hit import Hit, Hsp
from swsearch.results.hit_list import HitList
from swsearch.results.query_alignment import alignment_of
from swsearch.results.result import IterationStep, SearchResult
from swsearch.results.table import Headers, HitTable, HspTable, Numbers, SubjectCodes

__all__ = [
    "Headers",
    "Hit",
    "HitList",
    "HitTable",
    "Hsp",
    "HspTable",
    "IterationStep",
    "Numbers",
    "SearchResult",
    "SubjectCodes",
    "alignment_of",
]
