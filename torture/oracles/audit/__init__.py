"""The audit checks the invariants that make ZFS safe, at every acknowledgement and uberblock. Pure."""
