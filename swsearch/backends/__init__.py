"""Backends: where searches are computed, in this process alone or by an engine that they share."""
