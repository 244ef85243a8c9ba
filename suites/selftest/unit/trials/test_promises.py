"""The trace of a client's disk: the wire's for each cut. A missing trace proves nothing."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torture.choices.transports import AXIS as TRANSPORTS
from torture.choices.transports.protocol import Attachment, Traits, Transport
from torture.errors import HarnessError
from torture.facts.axes.axis import Choice
from torture.facts.evidence.requests import BLOCK_REQUESTS, BlockKind, BlockRequest
from torture.facts.recording.events import Event, Kind, Recording
from torture.facts.wire.disk_requests import DiskWire
from torture.facts.wire.nvme_pdus import NvmeTcpOnWire
from torture.trials.trial.promises.disk_trace import QemuTrace, WireTrace
from torture.trials.trial.promises.of_disk import completions_before
from torture.trials.trial.shared.machines import PowerCut


class Listener:
    """Stands in for a packet socket: what is written down is there once it has been stopped."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True
        self.file.write_bytes(b"")


@pytest.mark.parametrize("choice", TRANSPORTS.choices, ids=lambda choice: choice.name)
def test_every_transport_has_one_witness_of_its_promises(choice: Choice[Transport]) -> None:
    attachment = choice.value.attachment(nas_host="nas")
    assert (attachment.source is None) is not (attachment.wire is None)


def traced(folder: Path, *, spans: int) -> tuple[WireTrace, list[Listener]]:
    listeners: list[Listener] = []

    def listen(file: Path) -> Any:
        listeners.append(Listener(file))
        return listeners[-1]

    protocol = DiskWire(protocol=NvmeTcpOnWire(4420))
    wire = WireTrace(protocol, sector_bytes=512, spans=spans, folder=folder, listen=listen)
    return wire, listeners


@pytest.mark.parametrize("spans", [1, 2])
def test_the_wire_is_recorded_to_the_last_span_and_no_longer(tmp_path: Path, spans: int) -> None:
    wire, listeners = traced(tmp_path, spans=spans)
    for _ in range(spans):
        assert not listeners[-1].is_stopped
        assert wire.requests() == ()
    assert all(listener.is_stopped for listener in listeners)
    assert [x.file.name for x in listeners] == [f"wire-{x + 1}.pcap" for x in range(spans)]


def test_no_listener_is_left_after_a_trial(tmp_path: Path) -> None:
    wire, [listener] = traced(tmp_path, spans=2)
    wire.close()
    assert listener.is_stopped


def test_a_trace_that_is_not_there_is_the_machinerys_failure(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="QEMU wrote no trace"):
        QemuTrace(file=tmp_path / "none").requests()


def audited(
    folder: Path, *requests: BlockRequest, acknowledged: int = 0, fault: str | None = None
) -> tuple[BlockRequest, ...]:
    """The known requests of a disk at a cut 1 s after the log began, at 5 s by the host's clock."""
    trace = SimpleNamespace(requests=lambda: requests, error_ns=7)
    marks = SimpleNamespace(spans_ns=[(5_499_999_000, 5_500_001_000)])
    machines: Any = SimpleNamespace(disk_trace=trace, marks=marks)
    trial: Any = SimpleNamespace(
        fault=fault,
        folder=folder,
        attachment=Attachment(),
        transport=SimpleNamespace(traits=Traits(ports=())),
    )
    events = (
        Event(seq=0, time_ns=500_000_000, kind=Kind.MARK),
        Event(seq=1, time_ns=1_000_000_000, kind=Kind.WRITE_COMPLETE),
    )
    recording = Recording(folder=folder, disks=(), events=events)
    power_cut = PowerCut(recording=recording, seq=1, t_ms=0.0, took_ms=0.0)
    completions = completions_before(
        trial, machines, power_cut, acknowledged=acknowledged, is_second=False
    )
    assert completions is not None
    assert completions.error_ns == 1_000 + 7
    lines = (folder / BLOCK_REQUESTS).read_text().splitlines()
    assert [BlockRequest(**json.loads(line)) for line in lines] == [*completions.requests]
    return tuple(x for x in completions.requests if isinstance(x, BlockRequest))


def flush(submitted_ms: int, completed_ms: int) -> BlockRequest:
    return BlockRequest(
        kind=BlockKind.FLUSH,
        submitted_ns=submitted_ms * 1_000_000,
        completed_ns=completed_ms * 1_000_000,
    )


def test_times_of_the_hosts_clock_are_aligned_with_the_recording(tmp_path: Path) -> None:
    known = audited(tmp_path, flush(5_100, 5_900), flush(5_200, 6_100), acknowledged=1)
    assert known == (flush(100, 900),), "the other was completed after the cut"


def test_a_disk_without_a_trace_does_not_count_as_correct(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="3 operations were acknowledged"):
        audited(tmp_path, acknowledged=3)
    assert audited(tmp_path, acknowledged=0) == ()
    assert audited(tmp_path, acknowledged=3, fault="fsync-ignored") == ()
