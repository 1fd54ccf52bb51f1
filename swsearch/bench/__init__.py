"""Measurements of ``swsearch bench``."""
