"""Whether E-values are true, and what is found."""
