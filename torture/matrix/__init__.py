"""Axes, cells and promises. Pure."""
