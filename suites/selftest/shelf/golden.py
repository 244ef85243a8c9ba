"""A recording with views of every policy, kept in the repository: the same bytes for ever, everywhere.

`python -m suites.selftest.shelf.golden` makes another one, which is only needed when the format changes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from suites.selftest.shelf.requests import payload
from suites.selftest.shelf.rig import Line, Server, build, disk, of_view
from torture.facts.recording.crash_state import (
    CrashState,
    DiskState,
    Policy,
    write_crash_state,
)
from torture.facts.recording.events import (
    DATA,
    LOG,
    RECORD_BYTES,
    Kind,
    load_recording,
    read_events,
)

FOLDER = Path(__file__).resolve().parents[1] / "recorded" / "shelf"
EXPECTED = "expected.json"
DISK_BYTES = 32768
SLOW = {"write_us": 30_000, "flush_us": 0}
"""So slow that requests sent at once are all in flight."""

Sums = dict[str, dict[str, str]]
"""CrashState file to disk to the SHA-256 of its content."""


def small(line: Line, first: int, *places: int) -> None:
    """A sector here and there, one after another."""
    for number, place in enumerate(places, first):
        line.wait_all([line.write(payload(number, 512), place * 512)])


def large(line: Line, first: int, *places: int) -> None:
    for number, place in enumerate(places, first):
        line.wait_all([line.write(payload(number, 4096), place * 4096)])


def first_life(folder: Path) -> None:
    """Two disks; flushed, FUA, zeroed, trimmed, unflushed and in-flight writes; frozen at a mark."""
    disks = [
        disk("data0", size=DISK_BYTES, sector=512, profile=SLOW),
        disk("slog0", size=DISK_BYTES, sector=4096),
    ]
    server = Server(build(), folder, "first", disks, recording="life-1")
    data, slog, marks = server.line("data0"), server.line("slog0"), server.line("marks")
    small(data, 1, 0, 1, 2, 9, 60)
    large(slog, 10, 0, 2)
    slog.wait_all([slog.write(payload(12, 4096), 4096, fua=True)])
    data.wait_all([data.flush()])
    marks.wait_all([marks.write(b"acknowledged: 12", 0)])
    data.wait_all([data.zero(1024, 512), data.trim(512, 60 * 512, fua=True)])
    large(slog, 13, 2, 5)
    slog.wait_all([slog.flush()])
    large(slog, 15, 5, 0)
    small(data, 20, 3, 9)
    data.wait_all([data.write(payload(22, 1536), 0)])
    events_before = int(server.status()["seq"])
    in_flight = [data.write(payload(23 + place, 1024), place * 512) for place in range(4)]
    control = server.line("control")
    # on a busy machine the first of them may have ended by now
    data.until(lambda: int(server.status()["seq"]) >= events_before + len(in_flight))
    control.tell({"freeze": {"event": "mark"}})
    marks.write(b"never acknowledged, perhaps", 0)
    control.until(lambda: bool(server.status()["frozen"]))
    server.kill()


def views_of_first_life(recording: Path) -> dict[str, CrashState]:
    """One of each policy, and a few cuts on the way."""
    events = load_recording(recording).events
    last = events[-1].seq
    writes = [event for event in events if event.kind is Kind.WRITE_SUBMIT]
    some = tuple(
        event.seq if place % 2 else (event.seq, (0, 2)) for place, event in enumerate(writes)
    )
    flush = next(event.seq for event in events if event.kind is Kind.FLUSH_COMPLETE)
    named: dict[str, tuple[DiskState, int]] = {
        policy.value: (DiskState(policy=policy), last)
        for policy in Policy
        if policy not in (Policy.LYING, Policy.EXPLICIT)
    } | {
        "torn-of-what-a-cache-holds": (DiskState(policy=Policy.TORN, held_bytes=4096), last),
        "lying": (DiskState(policy=Policy.LYING, lying_ms=115), last),
        "lying-all-along": (DiskState(policy=Policy.LYING, lying_ms=100_000), last),
        "explicit": (DiskState(policy=Policy.EXPLICIT, survivors=some), last),
        "torn-before-the-flush-ends": (DiskState(policy=Policy.TORN), flush - 1),
        "flushed-when-the-flush-ends": (DiskState(policy=Policy.FLUSHED), flush),
    }
    return {
        name: CrashState(
            recording=recording, cut=cut, seed=7 * cut, disks={"data0": view, "slog0": view}
        )
        for name, (view, cut) in named.items()
    } | {
        "slog-is-gone": CrashState(
            recording=recording, cut=last, seed=1, disks={"data0": DiskState(policy=Policy.TORN)}
        )
    }


def second_life(folder: Path) -> None:
    """Recovery over a torn view, which is cut as well."""
    disks = [
        disk("data0", size=DISK_BYTES, source=of_view("torn.view.json", "data0")),
        disk("slog0", size=DISK_BYTES, sector=4096, source=of_view("lying.view.json", "slog0")),
    ]
    server = Server(build(), folder, "second", disks, recording="life-2")
    data, slog = server.line("data0"), server.line("slog0")
    small(data, 40, 1, 63)
    data.wait_all([data.flush()])
    small(data, 42, 2, 1, 20, 21)
    slog.wait_all([slog.trim(4096, 0)])
    server.kill()


def views_of_second_life(recording: Path) -> dict[str, CrashState]:
    last = load_recording(recording).events[-1].seq
    return {
        f"again-{policy}": CrashState(
            recording=recording,
            cut=last,
            seed=12,
            disks={name: DiskState(policy=policy) for name in ("data0", "slog0")},
        )
        for policy in (Policy.ALL, Policy.FLUSHED, Policy.SUBSET)
    }


def record(folder: Path) -> None:
    """Both lives and all view files, into an empty folder with a short path."""
    first_life(folder)
    write_named(folder, views_of_first_life(folder / "life-1"))
    second_life(folder)
    write_named(folder, views_of_second_life(folder / "life-2"))
    for pattern in ("*.sock", "*.err", "first.json", "second.json"):
        for scrap in folder.glob(pattern):
            scrap.unlink()
    for life in ("life-1", "life-2"):
        (folder / life / "index").unlink(missing_ok=True)
        log = folder / life / LOG
        whole = read_events(log.read_bytes())
        log.write_bytes(log.read_bytes()[: len(whole) * RECORD_BYTES])


def write_named(folder: Path, views: dict[str, CrashState]) -> None:
    for name, view in views.items():
        write_crash_state(folder / f"{name}.view.json", view)


def exports_of(folder: Path) -> list[dict[str, Any]]:
    """Every disk of every view in a folder, as an export `VIEW:DISK`."""
    exports = []
    for path in sorted(folder.glob("*.view.json")):
        view = json.loads(path.read_text())
        recorded = json.loads((folder / view["recording"] / "shelf.json").read_text())
        sectors = {each["name"]: each["sector"] for each in recorded["disks"]}
        exports += [
            disk(
                f"{path.name}:{name}",
                size=DISK_BYTES,
                sector=sectors[name],
                source=of_view(path.name, name),
            )
            for name in view["disks"]
        ]
    return exports


def sums_of(contents: dict[str, bytes]) -> Sums:
    sums: Sums = {}
    for export, content in contents.items():
        view, name = export.split(":")
        sums.setdefault(view, {})[name] = hashlib.sha256(content).hexdigest()
    return sums


def served(folder: Path, exports: Sequence[dict[str, Any]]) -> dict[str, bytes]:
    """The plugin's views of them; leaves `index` files in the recordings."""
    server = Server(build(), folder, "golden", exports, threads=1)
    contents = server.contents({each["name"]: DISK_BYTES for each in exports})
    server.stop()
    server.configuration.unlink()
    return contents


def main() -> int:
    """Make the recording again."""
    with tempfile.TemporaryDirectory(prefix="shelf-") as made:
        folder = Path(made) / "g"
        folder.mkdir()
        record(folder)
        shutil.rmtree(FOLDER, ignore_errors=True)
        shutil.copytree(folder, FOLDER, copy_function=shutil.copyfile)
        sums = sums_of(served(folder, exports_of(folder)))
        (FOLDER / EXPECTED).write_text(json.dumps(sums, indent=1) + "\n")
        data = sum((FOLDER / life / DATA).stat().st_size for life in ("life-1", "life-2"))
        print(f"{sum(map(len, sums.values()))} exports of {len(sums)} views, {data} bytes of data")
    return 0


if __name__ == "__main__":
    sys.exit(main())
