"""Figures from the rows: rates, pairs, groups, comparisons."""
