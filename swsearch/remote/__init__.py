"""A search on another machine: what is asked for and what was found, as bytes; and the client of a server."""
