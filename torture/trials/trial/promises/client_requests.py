"""The requests that the client's disk had completed before the cut, by the recording's clock."""

from __future__ import annotations

import json
from dataclasses import asdict

from torture.choices.matrix.cells import FATE, SETTINGS
from torture.errors import HarnessError
from torture.facts.axes.fate import Fate
from torture.facts.evidence.folder import VERIFIERS
from torture.facts.evidence.requests import (
    BLOCK_REQUESTS,
    BLOCK_REQUESTS_AGAIN,
    FILE_REQUESTS,
    FILE_REQUESTS_AGAIN,
    TRACED,
    FileRequest,
    clock_of,
)
from torture.facts.recording.events import Kind
from torture.facts.wire.files_on_wire import FileWire
from torture.files import write_whole
from torture.machines.lab.machine import Machine
from torture.oracles.audit.durable import Completions
from torture.trials.trial.promises.disk_trace import QemuTrace, WireTrace
from torture.trials.trial.shared.machines import Machines, PowerCut, Trial
from torture.trials.trial.shared.resident import EvidenceWriter


def listen_on_wire(trial: Trial, machines: Machines) -> None:
    """Record the wire between NAS and client, before the client of a load attaches its disk."""
    if (wire := trial.attachment.wire) is None:
        return
    is_single = trial.plan.second is None and not _is_heard_again(trial)
    machines.disk_trace = WireTrace(
        wire,
        sector_bytes=trial.volume_options.sector_bytes,
        spans=1 if is_single else 2,
        folder=machines.shelf.directory,
        listen=machines.lab.record_nas_packets,
    )


def _is_heard_again(trial: Trial) -> bool:
    """Whether the wire shows an NFS server's verifier after its return: its client lives on."""
    return isinstance(trial.attachment.wire, FileWire) and trial.cell[FATE] is Fate.NAS_ONLY


def keep_verifiers(trial: Trial, machines: Machines, evidence: EvidenceWriter) -> None:
    """Keep the write verifiers of both lives of an NFS server whose client has lived on.

    Call it once, where no second cut was made. A wire that cannot be read ends no trial: the data
    that the cut took are still to be looked for.
    """
    trace, former = machines.disk_trace, trial.folder / FILE_REQUESTS
    if trace is None or not _is_heard_again(trial) or not former.exists():
        return
    answers = map(json.loads, former.read_text().splitlines())
    before = {answer["verifier"] for answer in answers} - {""}
    try:
        later = trace.requests()
    except HarnessError as failure:
        evidence.write(VERIFIERS, {"unread": str(failure)})
        return
    after = {one.verifier for one in later if isinstance(one, FileRequest)} - {""}
    if before and after:
        evidence.write(VERIFIERS, {"before": sorted(before), "after": sorted(after)})


def unlike_on_wire(trial: Trial) -> tuple[str, ...]:
    """The wire's mode of a hypervisor's image, where that is not the cell's.

    A direct write over NFS is stable, unless it takes several WRITEs. Of writes through the page cache
    some are not (Linux fs/nfs/direct.c, fs/nfs/write.c, `FLUSH_COND_STABLE`).
    """
    image, kept = trial.attachment.image, trial.folder / FILE_REQUESTS
    is_usual = trial.fault is None and not trial.cell[SETTINGS].mount_options
    is_told = is_usual and trial.transport.traits.is_nfs and kept.exists()
    is_stable = image.is_stable_on_wire if image is not None and is_told else None
    if is_stable is None:
        return ()
    seen = [json.loads(line)["is_forced"] for line in kept.read_text().splitlines()]
    if not seen or all(seen) is is_stable:
        return ()
    words = f"{sum(seen)} of {len(seen)} requests on the wire are stable"
    return (f"under the load: {words}, not {'all' if is_stable else 'some'}",)


def trace_disk(trial: Trial, machines: Machines, client: Machine) -> None:
    """Trace the requests to the client's disk from now on, where its QEMU attaches the disk."""
    if trial.attachment.source is None:
        return
    trace = QemuTrace(file=trial.scratch / "client-disk.trace")
    client.trace(TRACED, into=trace.file)
    machines.disk_trace = trace


def completions_before(
    trial: Trial, machines: Machines, cut: PowerCut, *, acknowledged: int, is_second: bool
) -> Completions | None:
    """The requests that completed before the cut; None where no trace has them.

    Keeps them as evidence, a JSON object a line: separately for files, and for a second cut. Raises
    `HarnessError` where operations were acknowledged and the trace has no request. That audit must
    not look like an audit without findings.

    There is no trace without a load that keeps a ledger: its marks have the times of both clocks. Where
    the NAS moves blocks, ZFS's log does not show the place of a request.
    """
    trace, marks = machines.disk_trace, machines.marks
    if trace is None or marks is None or trial.transport.traits.moves_blocks:
        return None
    requests = trace.requests()
    must_ask = trial.volume_options.sync not in trial.transport.traits.unflushed
    if acknowledged and not requests and must_ask and trial.fault is None:
        raise HarnessError(
            f"{acknowledged} operations were acknowledged, and the trace has no request of the "
            f"client's disk",
            hint="tools/doctor shows the version of QEMU: its trace may be worded otherwise",
        )
    events = cut.recording.events[: cut.seq + 1]
    marked_ns = [event.time_ns for event in events if event.kind is Kind.MARK]
    clock = clock_of(marks.spans_ns, marked_ns)
    if clock is None:
        if not marked_ns:
            return None
        raise HarnessError(
            "the host's clock was set during the load: the client's disk cannot be audited",
            hint="run the trial again, with a clock that is not set back",
        )
    requests = tuple(map(clock.dated, requests))
    requests = tuple(x for x in requests if x.completed_ns <= events[-1].time_ns)
    of_files = isinstance(trial.attachment.wire, FileWire)
    first, again = (
        (FILE_REQUESTS, FILE_REQUESTS_AGAIN) if of_files else (BLOCK_REQUESTS, BLOCK_REQUESTS_AGAIN)
    )
    text = "".join(json.dumps(asdict(request)) + "\n" for request in requests)
    write_whole(trial.folder / (again if is_second else first), text.encode())
    return Completions(
        requests=requests,
        error_ns=clock.error_ns + trace.error_ns,
        names_are_stable=trial.transport.traits.names_are_stable,
    )
