"""Rates, intervals, comparisons and sample sizes: numbers in, numbers out. Pure."""
