"""Rates and tables from records; reads, runs nothing."""
