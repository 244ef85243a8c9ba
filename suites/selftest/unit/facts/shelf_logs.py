"""Logs of a shelf, written event by event, for the tests of its specification."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from torture.facts.recording.crash_state import DiskState, Policy
from torture.facts.recording.events import LOG_VERSION, Event, Kind
from torture.facts.recording.model import content

SECTOR = 512
SECTORS = 8
BASE = b"\xff" * SECTOR * SECTORS
"""The first content of every disk: no zeroes, so that a zeroed sector differs."""

COMPLETION_OF = {
    Kind.WRITE_SUBMIT: Kind.WRITE_COMPLETE,
    Kind.ZERO_SUBMIT: Kind.ZERO_COMPLETE,
    Kind.TRIM_SUBMIT: Kind.TRIM_COMPLETE,
    Kind.FLUSH_SUBMIT: Kind.FLUSH_COMPLETE,
}


def payload(submission: int, sectors: int = SECTORS) -> bytes:
    """The content of a submission: each sector names its submission and its place in it."""
    return b"".join(
        f"{submission}.{place}".encode().ljust(SECTOR, b"\0") for place in range(sectors)
    )


@dataclass
class Log:
    """A log under construction; its requests are known by their submissions' numbers."""

    events: list[Event] = field(
        default_factory=lambda: [
            Event(seq=0, time_ns=0, kind=Kind.BEGIN, reference=LOG_VERSION),
        ]
    )
    now_ms: int = 0

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self.events[-1].seq

    def submit(
        self,
        kind: Kind = Kind.WRITE_SUBMIT,
        *,
        at: int = 0,
        sectors: int = 1,
        disk: int = 0,
        fua: bool = False,
    ) -> int:
        has_payload = kind is Kind.WRITE_SUBMIT
        return self._append(
            kind,
            disk=disk,
            fua=fua,
            offset=at * SECTOR,
            length=0 if kind is Kind.FLUSH_SUBMIT else sectors * SECTOR,
            payload_crc=zlib.crc32(payload(len(self.events), sectors)) if has_payload else 0,
        )

    def complete(self, submission: int, *, error: int = 0) -> int:
        submitted = self.events[submission]
        return self._append(
            COMPLETION_OF[submitted.kind], disk=submitted.disk, reference=submission, error=error
        )

    def write(
        self,
        kind: Kind = Kind.WRITE_SUBMIT,
        *,
        at: int = 0,
        sectors: int = 1,
        disk: int = 0,
        fua: bool = False,
    ) -> int:
        """A write that is completed at once."""
        submission = self.submit(kind, at=at, sectors=sectors, disk=disk, fua=fua)
        self.complete(submission)
        return submission

    def flush(self, *, disk: int = 0) -> int:
        return self.write(Kind.FLUSH_SUBMIT, disk=disk)

    def held(
        self,
        view: DiskState,
        *,
        disk: int = 0,
        cut: int | None = None,
        seed: int = 0,
        sector: int = SECTOR,
    ) -> list[str]:
        """Whose each sector of a disk is after the cut: `12.0`, `zero`, or `` for what was there."""
        held = content(
            BASE,
            self.events,
            disk=disk,
            sector=sector,
            view=view,
            cut=self.last if cut is None else cut,
            seed=seed,
            payload=payload,
        )
        sectors = [held[start : start + SECTOR] for start in range(0, len(held), SECTOR)]
        return [_owner(sector) for sector in sectors]

    def _append(
        self,
        kind: Kind,
        *,
        disk: int | None,
        fua: bool = False,
        error: int = 0,
        offset: int = 0,
        length: int = 0,
        reference: int = 0,
        payload_crc: int = 0,
    ) -> int:
        self.events.append(
            Event(
                seq=len(self.events),
                time_ns=self.now_ms * 1_000_000,
                kind=kind,
                disk=disk,
                fua=fua,
                error=error,
                offset=offset,
                length=length,
                reference=reference,
                payload_crc=payload_crc,
            )
        )
        return self.last


def _owner(sector: bytes) -> str:
    if sector == BASE[:SECTOR]:
        return ""
    return sector.rstrip(b"\0").decode() or "zero"


def explicit(*kept: int | tuple[int, tuple[int, ...]]) -> DiskState:
    """These submissions survive, or of each only these places."""
    return DiskState(
        policy=Policy.EXPLICIT,
        survivors=kept,
    )


Step = tuple[str, int, int, int, bool]


def log_of(steps: Sequence[Step], *, disks: int = 2) -> Log:
    """A log of random steps: what completes is any request that is open."""
    log = Log()
    is_open: list[int] = []
    for verb, which, at, sectors, flag in steps:
        match verb:
            case "complete" | "fail" if is_open:
                done = is_open.pop(which % len(is_open))
                log.complete(done, error=5 if verb == "fail" else 0)
            case "wait":
                log.now_ms += which
            case "write-submit" | "zero-submit" | "trim-submit" | "flush-submit":
                is_open.append(
                    log.submit(
                        Kind(verb),
                        at=at,
                        sectors=min(sectors, SECTORS - at),
                        disk=which % disks,
                        fua=flag and verb != "flush-submit",
                    )
                )
    return log


logs = st.lists(
    st.tuples(
        st.sampled_from(
            ["write-submit", "complete", "flush-submit", "complete", "write-submit", "complete",
             "zero-submit", "trim-submit", "wait", "fail"]
        ),
        st.integers(0, 9),
        st.integers(0, SECTORS - 1),
        st.integers(1, SECTORS),
        st.booleans(),
    ),
    min_size=10,  # or half of them have five steps at most
    max_size=40,
).map(log_of)  # fmt: skip
"""Random logs of two disks: overlapping writes, flushes, FUA, failures, anything in flight."""
