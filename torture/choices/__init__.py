"""The choices that make a cell, and the faults to plant in it. Pure.

Each room has choices of one kind: a file has one, or several that are alike. `matrix` joins them to
cells and states the guarantees of each cell. `faults` and `knownbugs` name deliberate defects. A
choice may import facts and oracles.
"""
