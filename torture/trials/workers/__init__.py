"""Where trials run: one file a place, `local` is this host."""

from __future__ import annotations

from torture.discovery import offered
from torture.trials.workers.protocol import WorkerOrders, WorkerSite, WorkerSiteKind


def worker_sites() -> dict[str, WorkerSiteKind]:
    """Every place there is a file of, by its name."""
    kinds: tuple[WorkerSiteKind, ...] = offered(__name__, "WORKERS")
    return {kind.name: kind for kind in kinds}


def must_be_known(text: str) -> None:
    """Raise `ValueError`, which says what is known, unless `NAME` or `NAME:PLACE` names one."""
    name, _, _ = text.partition(":")
    sites = worker_sites()
    if name not in sites:
        raise ValueError(f"there are no workers {name!r}, but {', '.join(sites)}")


def open_site(text: str, orders: WorkerOrders) -> WorkerSite:
    """The place that `NAME` or `NAME:PLACE` asks for.

    Raises `ValueError` for a name that is none, and `HarnessError` when the place cannot be had.
    """
    must_be_known(text)
    name, _, place = text.partition(":")
    return worker_sites()[name].open(orders, place)
