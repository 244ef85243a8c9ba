"""The folder of a trial: its ledger, the outputs of its tools, its cut. Pure."""
