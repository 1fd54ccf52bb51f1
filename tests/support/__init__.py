"""Shared code of tests: cases, fakes, and machines that stand for a GPU."""
