"""A night: one run split over several machines, put together again and held against the last one."""
