"""Where E-values come from."""
