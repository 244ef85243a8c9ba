"""The writes of ZFS's labels in a recording (pure)."""

from __future__ import annotations

from torture.facts.recording.events import Kind, Recording
from torture.facts.recording.roles import CHECKSUM_BYTES, LABEL_BYTES, Role, role_of


def lengths_of_labels(recording: Recording) -> dict[int, int]:
    """The length of the configuration in each write of a label, by submission; zeroes follow it."""
    payloads = {
        event.seq: recording.payload(event)
        for event in recording.events
        if event.kind is Kind.WRITE_SUBMIT and event.length == LABEL_BYTES
    }
    return {
        seq: len(payload[:-CHECKSUM_BYTES].rstrip(b"\0"))
        for seq, payload in payloads.items()
        if role_of(payload) is Role.LABEL
    }
