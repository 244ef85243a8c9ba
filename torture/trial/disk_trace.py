"""What the client's disk had completed by the cut, laid beside the log of the NAS's disks."""

from __future__ import annotations

from torture.audit.completions import Completions
from torture.errors import HarnessError
from torture.evidence.block_requests import parse_trace, requests_as_text
from torture.files import write_whole
from torture.recording.clock import clock_of
from torture.recording.events import Kind, Recording
from torture.trial.context import TrialContext

_TOLD_TO_NS = 1_000
"""QEMU tells microseconds, the rest cut off."""


def completions_before(
    context: TrialContext, recording: Recording, *, cut: int, evidence: str
) -> Completions | None:
    """What was completed up to the cut; None where nothing tells of it.

    It is kept as `evidence`, a file's name.

    Nothing does where the client's disk is none of QEMU's, where no load keeps a ledger, whose marks
    tell both clocks, and where the host's clock was set during the load.
    """
    if context.traced is None or context.marks is None:
        return None
    events = recording.events[: cut + 1]
    heard_ns = [event.time_ns for event in events if event.kind is Kind.MARK]
    clock = clock_of(context.marks.spans_ns, heard_ns)
    if clock is None:
        return None
    try:
        told = context.traced.read_text(errors="replace")
    except OSError as error:
        raise HarnessError(f"QEMU told nothing of the client's disk: {error}") from error
    requests = tuple(request.since(clock.began_ns) for request in parse_trace(told))
    requests = tuple(x for x in requests if x.completed_ns <= recording.events[cut].time_ns)
    write_whole(context.folder / evidence, requests_as_text(requests).encode())
    return Completions(requests=requests, error_ns=clock.error_ns + _TOLD_TO_NS)
