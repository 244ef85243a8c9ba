"""The speed of a cell, measured in slow motion, beside its losses and beside published figures."""

BRINGS = ("suites/speed", "suites/benchmarks/test_speed.py")
"""Its files beside the folders of its name."""
