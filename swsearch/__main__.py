"""Run the command line as ``python -m swsearch``."""

from swsearch.cli import main

main()
