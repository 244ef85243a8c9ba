"""What a run leaves behind: its files as types, the score of each trial, the order of trials. Pure.

A record says what a trial's evidence came to. A record may import choices, oracles and facts.
"""
