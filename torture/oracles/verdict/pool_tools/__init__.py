"""The reports of ZFS's own tools on a pool."""
