"""The places where trials run: one file a place; `local` is this host."""

from __future__ import annotations

from torture.discovery import offered
from torture.trials.workers.protocol import WorkerOrders, WorkerSite, WorkerSiteKind


def worker_sites() -> dict[str, WorkerSiteKind]:
    """Every place that has a file, by its name."""
    kinds: tuple[WorkerSiteKind, ...] = offered(__name__, "WORKERS")
    return {kind.name: kind for kind in kinds}


def must_be_known(text: str) -> None:
    """Raise `ValueError`, which lists the known places, unless `NAME` or `NAME:PLACE` is one."""
    name, _, _ = text.partition(":")
    sites = worker_sites()
    if name not in sites:
        raise ValueError(f"there are no workers {name!r}, but {', '.join(sites)}")


def open_site(text: str, orders: WorkerOrders) -> WorkerSite:
    """The place that `NAME` or `NAME:PLACE` names.

    Raises `ValueError` for an unknown name, and `HarnessError` when the place is not available.
    """
    must_be_known(text)
    name, _, place = text.partition(":")
    return worker_sites()[name].open(orders, place)
