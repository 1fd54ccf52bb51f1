"""Alignments of pairs on a GPU."""
