"""All axes together: cells, matrices, shards, what each cell guarantees. Pure."""
