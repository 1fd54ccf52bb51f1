"""Guarantees under faults: seeded cases of damaged input, kills, limits, streams and other users.

Each module has one `Kind` of fault, whose cases are a function of a seed. ``python -m tests.faults`` is the long run.
``python -m tests.faults --only fasta --seed 1234`` repeats one case. ``test_faults.py`` runs a few of each kind.
"""
