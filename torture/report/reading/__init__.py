"""Runs, records and lines, whatever is in them, as rows of typed figures."""
