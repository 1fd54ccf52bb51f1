"""Options of a search: the tables that every interface reads.

The command line, `swsearch.search`, the server, TOML files, checkpoints and reports follow from the rows. To add an
option, add its row and its line of keywords here, and the code that acts on it.
"""
