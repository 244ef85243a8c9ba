"""The user-mode network has no wire between two machines."""

from __future__ import annotations

import pytest

from torture.errors import HarnessError
from torture.facts.speed.link import Link, slowed
from torture.machines.lab.network.networks import UserModeNetwork


def test_its_link_cannot_be_slowed() -> None:
    with pytest.raises(HarnessError, match="no wire to slow to 50000000 bit/s") as refused:
        UserModeNetwork().slowed_link(slowed(Link.GBE1, 20))
    assert "--network bridge" in str(refused.value.hint)
