"""What in the pool a transport offers: one file a kind of volume. Pure."""

POOL = "tank"
"""The NAS's pool."""
VOLUME = f"{POOL}/vm"
"""What of it a client's disk lies in, a zvol or a filesystem."""


def set_sync_script(sync: str) -> str:
    """Shell: give the volume another `sync` property (zfsprops(7)); durable when it returns."""
    return f"zfs set sync={sync} {VOLUME} && zpool sync {POOL}"
