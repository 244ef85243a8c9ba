"""Axes, cells and guarantees. Pure."""
