"""The files of a run as types, the score of each trial, the order of trials. Pure.

A record sums up a trial's evidence. A record may import choices, oracles and facts.
"""
