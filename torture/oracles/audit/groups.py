"""Transaction groups in a recording, and which write each of them surely begins with."""

from __future__ import annotations

from dataclasses import dataclass, field

from torture.facts.recording.events import Event


@dataclass(kw_only=True)
class Groups:
    """Follows a recording.

    `only_groups_write`: nothing else writes data or metadata, as a resilver does. Then a group vouches
    for what came before its first write, and else for what came before its uberblock.
    """

    only_groups_write: bool
    txgs: set[int] = field(default_factory=set)
    begun: dict[int, int] = field(default_factory=dict)
    """By the submission of an uberblock, the first write that is surely of its group."""
    _is_begun: bool = True
    """Nothing is known of the group that is under way when a recording begins."""
    _first: int | None = None
    _first_of: dict[int, int | None] = field(default_factory=dict)

    def hear_write(self, event: Event) -> bool:
        """A write that is surely of the group under way; whether it is the first one."""
        if self._is_begun:
            return False
        self._is_begun, self._first = True, event.seq
        return True

    def hear_uberblock(self, event: Event, txg: int) -> bool:
        """An uberblock of a group; whether it is the first of its copies."""
        is_new = txg not in self.txgs
        if is_new:
            self.txgs.add(txg)
            self._first_of[txg] = self._first
            self._is_begun, self._first = False, None
        first = self._first_of[txg]
        if first is not None and self.only_groups_write:
            self.begun[event.seq] = first
        return is_new

    def begun_by(self, uberblock: int) -> int:
        """The submission before which a write is in this uberblock's group, or in an older one."""
        return self.begun.get(uberblock, uberblock)
