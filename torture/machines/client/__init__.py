"""The host's end of what a client says while it runs: its ledger."""
