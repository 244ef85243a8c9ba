"""Known bugs: where each has to be found, and where it must not be. Pure."""

from __future__ import annotations

from torture.choices.knownbugs.protocol import FromSource, KnownBug
from torture.discovery import offered

KNOWN_BUGS: dict[str, KnownBug] = {
    bug.name: bug for bug in sorted(offered(__name__, "BUG"), key=lambda bug: bug.name)
}


def trees_needed() -> dict[str, FromSource]:
    """The versions whose source the user has to supply, by their names in `--tree`."""
    sides = (side for bug in KNOWN_BUGS.values() for side in (bug.affected, bug.cleared))
    return {side.zfs.name: side.zfs for side in sides if isinstance(side.zfs, FromSource)}
