"""The loads that the client runs on its disk: one file a workload. Pure.

The trial gives a workload its machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torture.choices.workloads.protocol import CLIENT_IMAGE, Workload
from torture.discovery import offered
from torture.errors import HarnessError
from torture.facts.axes.axis import Axis, Choice, Chosen

CHOICES: tuple[Choice[Workload], ...] = offered(__name__, "CHOICE")


def _pointless(chosen: Chosen) -> str | None:
    """Applications keep files or write on a bare disk; one reads modes and inode numbers."""
    filesystem, transport = chosen["filesystem"], chosen["transport"]
    is_bare = not (filesystem.value.has_files or transport.value.traits.gives_files)
    if is_bare and chosen["workload"].value.needs_files:
        return f"keeps files, and {filesystem.name} has none"
    if chosen["workload"].value.needs_atomic_writes:
        if not transport.value.traits.offers_atomic_writes:
            return f"needs atomic writes, and {transport.name} offers none"
        if not is_bare:
            return f"writes on the bare disk, and {filesystem.name} is there"
    if transport.value.traits.is_local and chosen["workload"].value.image != CLIENT_IMAGE:
        return f"needs a client's image of its own, and {transport.name} has the NAS's"
    if chosen["workload"].value.needs_inodes and not transport.value.traits.keeps_inodes:
        return f"checks modes and inodes, and {transport.name} does not show the NAS's"
    return None


AXIS = Axis(
    field="workload",
    noun="Workload",
    title="load",
    place=80,
    default="ledger",
    inapplicable=_pointless,
    choices=tuple(sorted(CHOICES, key=lambda choice: (choice.place, choice.name))),
)


def with_those_beside(chosen: Workload) -> tuple[Workload, ...]:
    """A workload, and the workloads that it declares to run beside it; each once."""
    return tuple(dict.fromkeys(_reached_from(chosen)))


def image_needed(workloads: Iterable[Workload], *, attached_by: str = CLIENT_IMAGE) -> str:
    """The image of a client that runs all of these; raises `HarnessError` where no image has all.

    `attached_by`: the image that its transport needs.
    """
    needed = {attached_by, *(workload.image for workload in workloads)} - {CLIENT_IMAGE}
    if len(needed) > 1:
        raise HarnessError(f"no image has all of {', '.join(sorted(needed))}")
    return needed.pop() if needed else CLIENT_IMAGE


def _reached_from(workload: Workload) -> Iterator[Workload]:
    yield workload
    for name in workload.beside:
        yield AXIS.choice(name).value
