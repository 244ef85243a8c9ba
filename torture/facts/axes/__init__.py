"""What an axis is, and the axes whose choices are few and closed: one file an axis. Pure."""
