"""What the client runs on its disk: one file a workload."""
