"""The disk shelf: the one process that serves all the NAS's disks and freezes them at one instant.

Today's shelf models disks with power-loss protection: what was completed at the freeze survives,
what was in flight does not. It is nbdkit's own `file` plugin under its `log` filter.
"""
