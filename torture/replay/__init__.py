"""A recorded trial again."""
