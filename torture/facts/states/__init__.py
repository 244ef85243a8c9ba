"""The crash states that the cuts of one recording can leave (pure)."""
