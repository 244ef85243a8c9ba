"""All axes together: cells, matrices, shards, and the guarantees of each cell. Pure."""
