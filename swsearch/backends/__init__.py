"""Backends: searches with an engine of their own or shared."""
