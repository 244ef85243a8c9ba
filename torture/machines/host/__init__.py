"""Facts of this host that every live machine depends on. Standard library only."""
