"""Blocks in files and on bare devices: the allowed states after a crash, against those that are there."""
