"""How many examples a property is tried on, where the usual number is not its own."""

from __future__ import annotations

from hypothesis import settings

_USUAL_IN_A_WHOLE_RUN = 100
"""hypothesis's own number, which a whole run leaves as it is (`suites/selftest/conftest.py`)."""


def examples(in_a_whole_run: int) -> int:
    """So many in a whole run, and in the fast loop the same share of them as of all others."""
    return max(1, in_a_whole_run * settings().max_examples // _USUAL_IN_A_WHOLE_RUN)
