"""Engines: what scores searches (`swsearch.engines.base`) and what aligns pairs (`swsearch.engines.base`).

There are three of each: on the GPU, on the CPU, and the plain reference; `swsearch.engines.factory` makes them.
"""

from swsearch.engines.factory import create_engine, create_pair_aligner
from swsearch.options.kinds import ENGINES

__all__ = ["ENGINES", "create_engine", "create_pair_aligner"]
