"""The engine: cells in, trial records out. Independent of pytest."""
