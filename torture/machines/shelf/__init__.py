"""The disk shelf: the one process that serves all the NAS's disks and freezes them at one instant.

It is nbdkit with a plugin of ours (`native/`, whose README.md is the contract). Every request and
its completion gets a number, and a disk keeps at the cut what its persistence allows.
"""
