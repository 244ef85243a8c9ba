"""The page: one file, no network."""
