"""The log devices of `kinds.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path

from torture.choices.slogs.protocol import SlogKind
from torture.facts.axes.axis import Choice, choice_of
from torture.facts.recording.disks import Persistence

_ROWS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["kinds"]
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
