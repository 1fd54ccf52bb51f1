"""The search pipeline: options, scoring, candidate selection, E-values and hits."""
