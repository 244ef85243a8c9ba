"""What the client's disk promised: who tells it, and how it is laid beside a recording."""
