"""Backends: a search in this process, with its own or a shared engine."""
