"""Option tables: each option is declared once, as a field with its row beside it.

`words` holds the choices, `numbers` reads numbers, `kinds` holds types of values, and `row` the shape of a table.
Nothing here imports numpy, so that ``--help`` starts fast.
"""
