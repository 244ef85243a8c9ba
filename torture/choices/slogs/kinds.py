"""The log devices of `kinds.toml`."""

from __future__ import annotations

from torture.choices.slogs.protocol import SlogKind
from torture.facts.axes.axis import Choice, choice_of, table_beside
from torture.facts.recording.disks import Persistence

_ROWS = table_beside(__file__)["kinds"]
CHOICES: tuple[Choice[SlogKind], ...] = tuple(
    choice_of(
        row,
        SlogKind(
            legs=tuple(map(Persistence, row["legs"])),
            gone_at_cut=row.get("gone_at_cut", 0),
            is_forgetful=row.get("is_forgetful", False),
        ),
    )
    for row in _ROWS
)
