"""Trials on several hosts: workers of a Dask cluster, and the evidence that they send."""

BRINGS = (
    "tools/fleet",
    "suites/chaos",
    "suites/benchmarks/test_fleet.py",
    "suites/benchmarks/test_fleet_trials.py",
)
"""Its files beside the folders of its name."""
