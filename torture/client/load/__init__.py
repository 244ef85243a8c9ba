"""The load the client runs, seen from the host: one file a workload."""
