"""What a cell is put together from, and what can be broken in it: one file a choice. Pure.

Each room has choices of one kind; `matrix` joins them to cells and says what a cell guarantees.
`faults` and `knownbugs` name what is wrong on purpose. A choice may import facts and oracles.
"""
