"""What facts mean: whether a recording keeps ZFS's promises, and what became of the data. Pure.

An oracle is a function of facts: the same evidence gives the same verdict, years later as well. It
may import facts.
"""
