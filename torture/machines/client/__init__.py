"""The host's side of the client's ledger, which reports events while the client runs."""
