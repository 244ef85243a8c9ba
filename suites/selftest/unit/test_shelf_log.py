"""The shelf's log: what a real nbdkit wrote until it was killed, and random logs against a reference.

`recorded/shelf.log` is nbdkit 1.32's, with the `log` filter over the `delay` filter (60 ms a write) over
the `file` plugin, driven through libnbd on four connections to three disks and ended with SIGKILL while
four writes were in flight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torture.shelf.log import DiskActivity, ShelfActivity, activity_of, has_unflushed_write

RECORDED = (Path(__file__).parents[1] / "recorded" / "shelf.log").read_text()
WRITES = ("Write", "Zero", "Trim")
DISKS = ("tank0", "log0")


@dataclass
class Request:
    """One request, and the lines at which it was submitted and completed well."""

    disk: str
    verb: str
    fua: bool
    submitted: int
    ended: int | None = None
    succeeded: bool = False

    @property
    def has_failed(self) -> bool:
        return self.ended is not None and not self.succeeded


def requests_of(lines: Sequence[str]) -> tuple[list[Request], dict[str, int]]:
    """Every request by the words of its lines, and the goodbyes of each disk that was opened."""
    disk_of: dict[str, str] = {}
    goodbyes: dict[str, int] = {}
    requests: dict[tuple[str, str], Request] = {}
    for number, line in enumerate(lines):
        words = line.split()
        said = dict(word.split("=", 1) for word in words if "=" in word)
        connection = said.get("connection")
        if connection is None:
            continue
        verb = words[3]
        if verb == "Connect":
            disk_of[connection] = said["export"]
            goodbyes.setdefault(said["export"], 0)
        elif verb == "Disconnect":
            goodbyes[disk_of[connection]] += 1
        elif verb.startswith("..."):
            request = requests[connection, said["id"]]
            request.ended = number
            request.succeeded = said["return"] == "0"
        else:
            requests[connection, said["id"]] = Request(
                disk=disk_of[connection],
                verb=verb,
                fua=said.get("fua") == "1",
                submitted=number,
            )
    return list(requests.values()), goodbyes


def reference(lines: Sequence[str]) -> ShelfActivity:
    """Slow and obvious: for every write, look for a flush that covers it."""
    requests, goodbyes = requests_of(lines)

    def is_covered(write: Request) -> bool:
        assert write.ended is not None
        return any(
            flush.verb == "Flush"
            and flush.succeeded
            and flush.disk == write.disk
            and write.ended < flush.submitted
            for flush in requests
        )

    disks = {}
    for disk, goodbyes_of_disk in goodbyes.items():
        writes = [one for one in requests if one.disk == disk and one.verb in WRITES]
        cached = [write for write in writes if write.ended is not None and not write.fua]
        disks[disk] = DiskActivity(
            writes=len(writes),
            flushes=sum(one.disk == disk and one.verb == "Flush" for one in requests),
            unflushed=sum(not is_covered(write) for write in cached),
            in_flight=sum(write.ended is None for write in writes),
            disconnects=goodbyes_of_disk,
            errors=sum(one.has_failed for one in requests if one.disk == disk),
        )
    return ShelfActivity(disks=disks)


def test_the_recorded_log_gives_what_was_done() -> None:
    activity = activity_of(RECORDED)
    assert activity.disks == {
        # a flush that was submitted before a write ended does not cover it; a later one does
        "tank0": DiskActivity(writes=8, flushes=3, unflushed=0, in_flight=2),
        # a write, a zero and a trim, all flushed, and an orderly goodbye
        "tank1": DiskActivity(writes=3, flushes=1, disconnects=1),
        # three writes with FUA, one more and a zero on their way
        "log0": DiskActivity(writes=5, flushes=3, in_flight=2),
    }
    assert (activity.flushes, activity.in_flight, activity.errors) == (7, 4, 0)


def test_a_write_that_ends_after_the_flush_was_submitted_stays_unflushed() -> None:
    before_last_flush = RECORDED[: RECORDED.index("connection=1 Flush id=8")]
    assert activity_of(before_last_flush).disks["tank0"].unflushed == 2


def test_cut_off_at_every_byte_a_log_counts_its_whole_lines() -> None:
    whole = RECORDED.splitlines()
    by_lines = [reference(whole[:count]) for count in range(len(whole) + 1)]
    for size in range(len(RECORDED) + 1):
        assert activity_of(RECORDED[:size]) == by_lines[RECORDED.count("\n", 0, size)], size


@pytest.mark.parametrize("junk", ["", "\n", "connection=\n", "\x00" * 100 + "\n", "a b c\n" * 3])
def test_unreadable_lines_are_skipped(junk: str) -> None:
    assert activity_of(junk + RECORDED + junk) == activity_of(RECORDED)


def test_a_request_of_a_connection_that_never_opened_is_nobodys() -> None:
    line = "2026-11-21 06:19:41.000000 connection=9 Write id=1 offset=0x0 count=0x1000 fua=0 ...\n"
    assert activity_of(line) == ShelfActivity(disks={})


def test_an_export_in_quotes_is_the_same_disk() -> None:
    quoted = RECORDED.replace("export=log0", 'export="log0"')
    assert activity_of(quoted) == activity_of(RECORDED)


@st.composite
def logs(draw: st.DrawFn) -> list[str]:
    """Lines of interleaved requests on up to four connections, some failed, some never ended."""
    exports = draw(st.lists(st.sampled_from(DISKS), min_size=1, max_size=4))
    lines = [f"connection={n} Connect export={disk} tls=0" for n, disk in enumerate(exports)]
    submitted = dict.fromkeys(range(len(exports)), 0)
    pending: list[tuple[int, int, str]] = []
    for _ in range(draw(st.integers(0, 40))):
        ends_one = draw(st.booleans())
        if pending and ends_one:
            connection, request, verb = pending.pop(draw(st.integers(0, len(pending) - 1)))
            result = draw(st.sampled_from(("0", "0", "0", "-1 error=EIO")))
            lines.append(f"connection={connection} ...{verb} id={request} return={result}")
            continue
        connection = draw(st.integers(0, len(exports) - 1))
        if draw(st.integers(0, 19)) == 0:
            lines.append(f"connection={connection} Disconnect transactions={len(lines)}")
            continue
        verb = draw(st.sampled_from((*WRITES, "Write", "Write", "Read", "Flush", "Flush")))
        submitted[connection] += 1
        request = submitted[connection]
        pending.append((connection, request, verb))
        fua = f" offset=0x0 count=0x200 fua={draw(st.integers(0, 1))}" if verb in WRITES else ""
        lines.append(f"connection={connection} {verb} id={request}{fua} ...")
    return [f"2026-11-21 06:19:41.{n:06} {line}" for n, line in enumerate(lines)]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs())
def test_any_log_is_counted_as_the_reference_counts_it(lines: list[str]) -> None:
    assert activity_of("".join(f"{line}\n" for line in lines)) == reference(lines)


_WRITE = "2026-11-21 05:41:20.493918 connection=1 Write id=7 offset=0x0 count=0x1000 ..."
_WRITTEN = "2026-11-21 05:41:20.493939 connection=1 ...Write id=7 return=0"
_FLUSH = "2026-11-21 05:41:20.494000 connection=2 Flush id=8 ..."
_FLUSHED = "2026-11-21 05:41:20.495000 connection=2 ...Flush id=8 return=0"
_READ = "2026-11-21 05:41:20.496000 connection=2 Read id=9 offset=0x0 count=0x2000 ..."


@pytest.mark.parametrize(
    ("lines", "unflushed"),
    [
        ((), False),
        ((_WRITE,), True),
        ((_WRITE, _WRITTEN), True),
        ((_WRITE, _WRITTEN, _READ), True),
        ((_WRITE, _WRITTEN, _FLUSH), True),
        ((_WRITE, _WRITTEN, _FLUSH, _FLUSHED), False),
        ((_FLUSHED, _WRITE), True),
        (("offset=0x0 count=0x1000 ...", _FLUSHED, _READ), False),
    ],
)
def test_the_end_of_a_log_tells_whether_a_write_is_not_flushed(
    lines: tuple[str, ...], unflushed: bool
) -> None:
    assert has_unflushed_write("\n".join(lines)) is unflushed
