"""Training of the data files of the package."""
