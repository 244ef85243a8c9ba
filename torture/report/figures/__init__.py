"""What the rows say: rates, pairs, groups, comparisons."""
