"""What a trial leaves behind: its folder, its ledger."""
