"""One search on many machines, on Dask: what a worker computes, and who computes what."""
