"""Profiles: position-specific queries, their files, and their construction from alignments."""
