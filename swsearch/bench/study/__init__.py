"""Study of published ways to fill the matrix on a GPU.

Each is a small kernel with the engine's recurrence. The engine does not use this package. ``cuda/study/`` holds the
kernels, `variants` the table of all that is checked, timed and tested; ``swsearch bench study`` runs it.
"""
