"""What is told of records: figures, pages, tables, exports, and the comparison of nights. Runs nothing.

The report reads: `reading` gives `figures`, and those give `page`, `terminal` and `exports`.
`night` splits a run over machines, and puts their shards together. The report may import records,
choices, oracles and facts.
"""
