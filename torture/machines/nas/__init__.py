"""The NAS's pool: its disks, its log devices, and the commands that make and import it. Pure."""
