"""Measurements of swsearch and its peers; run from the checkout's root with ``python -m``."""
