"""A study of published ways to fill the matrix on a GPU, each as a small kernel on the engine's recurrence.

Nothing of the engine uses this package. ``cuda/study/`` holds the kernels, `variants` the table of all that is
checked, timed and tested; ``swsearch bench study`` runs it.
"""
