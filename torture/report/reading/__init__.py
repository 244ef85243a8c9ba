"""Reads runs, records and lines, however damaged, into rows of typed figures."""
