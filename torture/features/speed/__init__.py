"""The speed of a cell, measured in slow motion, beside its losses and beside published figures."""

BRINGS = ("suites/speed",)
"""Its files beside the folders of its name."""
