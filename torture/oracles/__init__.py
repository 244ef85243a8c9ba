"""The meaning of facts: whether a recording keeps ZFS's promises, and the state of the data. Pure.

An oracle is a function of facts: the same evidence gives the same verdict, years later as well. It
may import facts.
"""
