"""A night: one run split over several machines, merged, and compared with the night before it."""

BRINGS = ("tools/night", ".github/workflows", ".gitlab-ci.yml")
"""Its files beside the folders of its name."""
