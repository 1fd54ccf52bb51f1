"""Statistics of scores: published constants, and null models fitted to each query."""
