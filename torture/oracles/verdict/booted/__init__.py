"""A VM that boots from the disk: its console, and the verdict from it."""
