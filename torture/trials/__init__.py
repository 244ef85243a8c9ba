"""Work with machines: a plan from a seed, one trial, many of them, and one of them again.

A trial may import everything but the report and the set-up. `plan` is pure: a seed decides, and no
machine is asked.
"""
