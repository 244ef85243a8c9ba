"""Trials on several hosts: workers of a Dask cluster, and the evidence that they send."""
