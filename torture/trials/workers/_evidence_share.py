"""The share that evidence travels by instead of with the results: a folder, or a URL of fsspec."""

from __future__ import annotations

import os
from typing import Any

from torture.errors import HarnessError
from torture.machines.host.places import opened_place, remove_place

EVIDENCE_VARIABLE = "TORTURE_EVIDENCE"
"""The variable with the folder or URL."""


def share_of(site: str) -> str:
    """The user's share, or nothing; raises `HarnessError` where this host cannot use it.

    A share that fails on the campaign's own host would cost each trial all its tries.
    """
    share = os.environ.get(EVIDENCE_VARIABLE, "")
    if share:
        place = f"{share}/{site}.probe"
        with opened_place(place, "wb") as file:
            file.write(site.encode())
        remove_place(place)
    return share


def sent(packed: bytes, share: str, name: str) -> dict[str, Any]:
    """Write the evidence to the share; return where it lies, for the outcome.

    It travels with the result where there is no share, and where the share fails: a trial that went
    well is not lost with it. `detour` then says why.
    """
    if not share:
        return {"evidence": packed}
    place = f"{share}/{name}.zip"
    try:
        with opened_place(place, "wb") as file:
            file.write(packed)
    except HarnessError as error:
        return {"evidence": packed, "detour": error.message}
    return {"place": place}


def received(outcome: dict[str, Any]) -> bytes:
    """The evidence of an outcome, which is on the share no longer; raises `HarnessError`."""
    packed: bytes = outcome.get("evidence", b"")
    if place := outcome.get("place"):
        with opened_place(place, "rb") as file:
            packed = file.read()
        remove_place(place)
    return packed
