"""The engine: cells in, trial records out. Knows nothing of pytest."""
