"""Setting this host up, and saying what it has and lacks. Standard library only."""
