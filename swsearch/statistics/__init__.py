"""Where E-values come from: published constants, or a fit to each query's scores."""
