"""What is measured of swsearch, and beside which peers; run from the checkout's root with ``python -m``."""
