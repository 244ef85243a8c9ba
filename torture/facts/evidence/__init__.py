"""What a trial's folder holds: ledger, outputs of tools, the cut. Pure."""
