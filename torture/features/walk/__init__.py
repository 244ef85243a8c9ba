"""The crash states of one recording, recovered one after another in a NAS that stays up."""
