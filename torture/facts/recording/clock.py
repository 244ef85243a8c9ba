"""When a recording began by the host's clock, so that other timed events can be compared with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torture.facts.evidence.block_requests import BlockRequest
from torture.facts.evidence.file_requests import FileRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordingClock:
    """The host's time at which the recording's clock was 0, and the bound on its error."""

    began_ns: int
    error_ns: int

    def dated(self, request: BlockRequest | FileRequest) -> BlockRequest | FileRequest:
        """The same request, its times by the recording's clock."""
        return replace(
            request,
            submitted_ns=request.submitted_ns - self.began_ns,
            completed_ns=request.completed_ns - self.began_ns,
        )


def clock_of(spans: Sequence[tuple[int, int]], recorded_ns: Sequence[int]) -> RecordingClock | None:
    """The clock of a recording, from the marks' times: sent, acknowledged, and recorded.

    `spans` are the host's times of sending and acknowledgement, `recorded_ns` the recording's times. Each
    mark was recorded between its two host times; all marks together leave an error of some tens of
    microseconds. None without marks, or when they contradict each other since the host's clock was set
    meanwhile.
    """
    pairs = list(zip(spans, recorded_ns, strict=False))
    if not pairs:
        return None
    earliest = max(sent_ns - log_ns for (sent_ns, _), log_ns in pairs)
    latest = min(acknowledged_ns - log_ns for (_, acknowledged_ns), log_ns in pairs)
    if earliest > latest:
        return None
    middle = (earliest + latest) // 2
    return RecordingClock(began_ns=middle, error_ns=latest - middle)
