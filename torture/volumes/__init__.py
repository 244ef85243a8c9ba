"""What in the pool a transport offers: one file a kind of volume. Pure."""

POOL = "tank"
"""The NAS's pool."""
