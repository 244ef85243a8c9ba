"""The decisions of a seed. Pure."""
