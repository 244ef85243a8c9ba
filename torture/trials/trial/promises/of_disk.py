"""What the client's disk had completed by the cut, laid beside the log of the NAS's disks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from torture.errors import HarnessError
from torture.facts.evidence.block_requests import (
    BLOCK_REQUESTS,
    BLOCK_REQUESTS_AGAIN,
    TRACED,
    BlockRequest,
)
from torture.facts.evidence.file_requests import FILE_REQUESTS, FILE_REQUESTS_AGAIN, FileRequest
from torture.facts.recording.clock import clock_of
from torture.facts.recording.events import Kind, Recording
from torture.facts.wire.files_on_wire import FileWire
from torture.files import write_whole
from torture.machines.lab.machine import Machine
from torture.oracles.audit.due.completions import Completions
from torture.trials.trial.context import TrialContext
from torture.trials.trial.promises.disk_trace import ToldByQemu, ToldOnWire


def listen_on_wire(context: TrialContext) -> None:
    """Have told what passes between NAS and client, before the client of a load attaches its disk."""
    if (wire := context.attachment.wire) is None:
        return
    context.disk_trace = ToldOnWire(
        wire,
        sector_bytes=context.volume_options.sector_bytes,
        cuts=1 if context.plan.second is None else 2,
        folder=context.shelf.directory,
        listen=context.lab.record_nas_packets,
    )


def trace_disk(context: TrialContext, client: Machine) -> None:
    """Have told what the client's disk does from now on, where it is its QEMU's."""
    if context.attachment.source is None:
        return
    trace = ToldByQemu(file=context.scratch / "client-disk.trace")
    client.trace(TRACED, into=trace.file)
    context.disk_trace = trace


def completions_before(
    context: TrialContext, recording: Recording, *, cut: int, acknowledged: int, is_second: bool
) -> Completions | None:
    """What was completed up to the cut; None where nothing tells of it.

    It is kept as evidence, by itself for a second cut. Raises `HarnessError` where operations were
    acknowledged and no request was heard: that audit must not look like one that found nothing.

    Nothing does where no load keeps a ledger, whose marks tell both clocks.
    """
    if context.disk_trace is None or context.marks is None:
        return None
    requests = context.disk_trace.requests()
    if acknowledged and not requests and context.fault is None:
        raise HarnessError(
            f"{acknowledged} operations were acknowledged, and of no request of the client's disk was "
            f"anything told",
            hint="tools/doctor says which QEMU this is: its trace may be worded otherwise",
        )
    events = recording.events[: cut + 1]
    heard_ns = [event.time_ns for event in events if event.kind is Kind.MARK]
    clock = clock_of(context.marks.spans_ns, heard_ns)
    if clock is None:
        if not heard_ns:
            return None
        raise HarnessError(
            "the host's clock was set during the load: the client's disk cannot be audited",
            hint="run the trial again, with a clock that only goes on",
        )
    requests = tuple(request.since(clock.began_ns) for request in requests)
    requests = tuple(x for x in requests if x.completed_ns <= recording.events[cut].time_ns)
    _keep(context, requests, is_second=is_second)
    return Completions(
        requests=requests,
        error_ns=clock.error_ns + context.disk_trace.error_ns,
        names_are_stable=context.transport.traits.names_are_stable,
    )


def _keep(
    context: TrialContext, requests: Sequence[BlockRequest | FileRequest], *, is_second: bool
) -> None:
    """One JSON object a line; those of a disk and those for files have files of their own."""
    of_files = isinstance(context.attachment.wire, FileWire)
    first, again = (
        (FILE_REQUESTS, FILE_REQUESTS_AGAIN) if of_files else (BLOCK_REQUESTS, BLOCK_REQUESTS_AGAIN)
    )
    text = "".join(json.dumps(asdict(request)) + "\n" for request in requests)
    write_whole(context.folder / (again if is_second else first), text.encode())
