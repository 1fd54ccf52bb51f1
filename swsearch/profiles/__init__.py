"""Position-specific queries: what a profile is, reading and writing them, and making them of alignments."""
