"""Work with machines: a plan from a seed, one trial, many trials, and one trial again.

A trial may import everything but the report and the set-up. `plan` is pure: a seed decides, without
any machine.
"""
