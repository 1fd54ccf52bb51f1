"""Distributed searches on Dask: scheduling on the client, tasks on the workers."""
