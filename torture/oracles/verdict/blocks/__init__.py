"""Blocks in files and on bare devices: what a crash may leave of them, held against what is there."""
