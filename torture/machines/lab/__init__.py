"""Live machines: domains, guest agents, networks, saved states."""
