"""One checker for each layer: each judges alone, and the judge merges their findings."""
