"""The trade: the measured speed of each cell beside its loss, and beside published tables (pure)."""
