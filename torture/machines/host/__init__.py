"""What is true of this host, and what every live machine stands on. Standard library only."""
