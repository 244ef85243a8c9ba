"""The crash states of one recording, recovered one after another in a NAS that stays up."""

BRINGS = ("suites/replay", "suites/benchmarks/test_crash_states.py")
"""Its files beside the folders of its name."""
