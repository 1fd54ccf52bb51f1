"""Results of a search, one per query, as objects and columns."""

from swsearch.results.hit import Hit, Hsp
from swsearch.results.hit_list import HitList
from swsearch.results.result import IterationStep, SearchResult, alignment_of
from swsearch.results.table import Headers, HitTable, HspTable, SubjectCodes

__all__ = [
    "Headers",
    "Hit",
    "HitList",
    "HitTable",
    "Hsp",
    "HspTable",
    "IterationStep",
    "SearchResult",
    "SubjectCodes",
    "alignment_of",
]
