"""To come."""

from swsearch.backends.local import LocalBackend

ResidentBackend = LocalBackend
