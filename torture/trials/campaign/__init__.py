"""Many trials: workers, progress, and the run they belong to."""
