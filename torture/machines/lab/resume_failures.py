"""Whether a saved state that did not resume is itself to blame (pure but for the exception).

libvirt reports most failures under two error codes (operation failed, internal error), so its words
decide; QEMU's own are among them. Neither is translated here: Python leaves the locale of messages
at C. The words are those of libvirt 9.0 to 11.3 (src/qemu/qemu_saveimage.c, src/conf/domain_conf.c,
src/qemu/qemu_migration.c) and QEMU 7.2 to 10 (migration/migration.c).
"""

from __future__ import annotations

import re
from enum import StrEnum

from torture.errors import HarnessError


class StateFault(StrEnum):
    """How far a failure to resume is the fault of the saved state."""

    NONE = "none"
    """Another resource was missing or in the way, or the cause is unknown."""
    POSSIBLE = "possible"
    """QEMU or the guest failed without a reason: a damaged state does that, a busy host too."""
    CERTAIN = "certain"
    """The file is damaged, or is the state of another machine."""


class StartRefused(HarnessError):
    """libvirt did not start a machine. `refusal` is its message, without the rest of QEMU's log.

    All lives of a machine share the log, so its last lines may be about an earlier one.
    """

    def __init__(self, message: str, *, refusal: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.refusal = refusal


_OUT_OF_MEMORY = re.compile(r"Cannot allocate memory")

_DAMAGED_OR_FOREIGN = re.compile(
    r"""
      failed\ to\ read\ (qemu\ header|domain\ XML|cookie)
    | save\ image\ is\ incomplete
    | image\ magic\ is\ incorrect
    | image\ version\ is\ not\ supported
    | invalid\ header\ data\ length
    | (unsupported\ save\ image|invalid\ compressed\ save)\ format
    | \A(\((domain_definition|save\ cookie)\):|at\ line\ )\d+:
    | does\ not\ match\ source
    | guest\ CPU\ doesn't\ match\ specification
    | load\ of\ migration\ failed
    """,
    re.VERBOSE | re.IGNORECASE,
)

_WITHOUT_A_REASON = re.compile(
    r"""
      unexpectedly\ closed\ the\ monitor(\ \(vm='[^']*'\))?\s*$
    | unexpectedly\ closed\ the\ monitor.*Assertion
    | job\ '[^']*'\ (unexpectedly\ )?failed
    | no\ domain\ with\ matching\ name
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def fault_of_state(error: HarnessError) -> StateFault:
    """The saved state's share in a failure to resume.

    An error other than a refused start comes from a resumed guest: it is silent, or it died.
    """
    if not isinstance(error, StartRefused):
        return StateFault.POSSIBLE
    refusal = error.refusal
    if _OUT_OF_MEMORY.search(refusal):
        return StateFault.NONE
    if _DAMAGED_OR_FOREIGN.search(refusal):
        return StateFault.CERTAIN
    return StateFault.POSSIBLE if _WITHOUT_A_REASON.search(refusal) else StateFault.NONE
