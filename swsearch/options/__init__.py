"""Option tables: each option is declared once, as a row.

`kinds` holds types and choices of values and reads numbers, and `row` the shape of a table. Nothing here imports
numpy, so that ``--help`` starts fast.
"""
