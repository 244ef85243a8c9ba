"""The fate of the transactions that applications acknowledged: one oracle for all applications. Pure."""
