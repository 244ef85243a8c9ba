"""The disk shelf: one process that serves all the NAS's disks and freezes them at one instant.

It is nbdkit with the suite's plugin (`native/`, whose README.md is the contract). Every request and
its completion gets a number, and at the cut a disk keeps its writes as its persistence allows.
"""
