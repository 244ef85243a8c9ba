"""A VM that boots from the disk: its console, and what that is worth."""
