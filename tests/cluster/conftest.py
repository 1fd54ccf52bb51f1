"""One small Dask cluster for the tests of this folder."""

from support.dask_cluster import dask_client

__all__ = ["dask_client"]
