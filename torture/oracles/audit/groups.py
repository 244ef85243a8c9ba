"""The transaction groups of a recording, and the first write that surely belongs to each."""

from __future__ import annotations

from dataclasses import dataclass, field

from torture.facts.recording.events import Event


@dataclass(kw_only=True)
class Groups:
    """Follows a recording.

    `only_groups_write`: only transaction groups write data or metadata, and no resilver. Then a
    committed group vouches for everything before its first write, otherwise before its uberblock.
    """

    only_groups_write: bool
    txgs: set[int] = field(default_factory=set)
    begun: dict[int, int] = field(default_factory=dict)
    """The first write that surely belongs to a group, by the submission of its uberblock."""
    _is_begun: bool = True
    """True at first: the recording may begin in the middle of a group."""
    _first: int | None = None
    _first_of: dict[int, int | None] = field(default_factory=dict)

    def hear_write(self, event: Event) -> bool:
        """Note a write that surely belongs to the current group; returns whether it is the first one."""
        if self._is_begun:
            return False
        self._is_begun, self._first = True, event.seq
        return True

    def hear_uberblock(self, event: Event, txg: int) -> bool:
        """Note an uberblock; returns whether it is the first copy of its group."""
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
        """Writes submitted before this event are in this uberblock's group, or in an older one."""
        return self.begun.get(uberblock, uberblock)
