"""A night: one run split over several machines, merged, and compared with the night before it."""
