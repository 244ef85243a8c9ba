"""A night: one run split over several machines, merged, and compared with the night before it."""

BRINGS = ("tools/night", ".github/workflows/nightly.yml", ".gitlab-ci.yml")
"""Its files beside the folders of its name."""
