"""The report on records: figures, pages, tables, exports, and the comparison of nights. Runs nothing.

`reading` provides `figures`, and these provide `page`, `terminal` and `exports`. `night` splits a run
over machines, and merges their shards. The report may import records, choices, oracles and facts.
"""
