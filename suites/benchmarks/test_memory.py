"""The shelf's memory: bounded by the touched sectors of a disk, not by the number of writes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from suites.benchmarks.figures import Figures
from suites.benchmarks.servers import Served, Work, run_fio, serve_shelf
from suites.benchmarks.settings import DISK, GIB, MIB, Settings, skip_without_room

_BYTES_PER_TOUCHED_BYTE = 4 / 512
"""A place of 4 bytes for each sector of 512 that was ever written."""
_REQUEST_BYTES = MIB
_THREADS = 16
"""nbdkit's default for each connection; each thread keeps a buffer for its largest request."""
_OTHER_BYTES = 16 * MIB
"""nbdkit, its libraries, its threads' stacks, and the allocator's reserve."""
_RECORDING = "recording"


@dataclass(kw_only=True)
class Peaks:
    """The highest memory use seen of a server."""

    served: Served
    anonymous: int = 0
    resident: int = 0

    def look(self) -> None:
        """Take its present values."""
        self.anonymous = max(self.anonymous, self.served.memory_bytes("RssAnon"))
        self.resident = max(self.resident, self.served.memory_bytes("VmRSS"))


def test_memory_is_bounded_by_the_touched_part_of_the_disk(
    figures: Figures, make_folder: Callable[[Path], Path], settings: Settings
) -> None:
    total_bytes = settings.recording_gib * GIB
    disk_bytes = total_bytes * 2 // 5 // MIB * MIB
    random_bytes = total_bytes // 20 // MIB * MIB
    skip_without_room(DISK, total_bytes + total_bytes // 10 + GIB)
    folder = make_folder(DISK)
    first_pass = Work(
        pattern="write",
        block_bytes=_REQUEST_BYTES,
        depth=4,
        disk_bytes=disk_bytes,
        total_bytes=disk_bytes,
    )
    again = replace(first_pass, total_bytes=total_bytes - disk_bytes - random_bytes)
    random = replace(
        first_pass, pattern="randwrite", block_bytes=4096, depth=32, total_bytes=random_bytes
    )
    try:
        with serve_shelf(folder, disk_bytes=disk_bytes, recording=_RECORDING) as served:
            served.first_read(4096, 0)
            peaks = Peaks(served=served)
            peaks.look()
            at_first = peaks.anonymous
            run_fio(served, first_pass, folder=folder, watch=peaks.look)
            touched_once = peaks.anonymous
            run_fio(served, again, folder=folder, watch=peaks.look)
            run_fio(served, random, folder=folder, watch=peaks.look)
            peaks.look()
        recorded_bytes = (folder / _RECORDING / "data").stat().st_size
    finally:
        shutil.rmtree(folder / _RECORDING, ignore_errors=True)
    bound = round(disk_bytes * _BYTES_PER_TOUCHED_BYTE) + _THREADS * _REQUEST_BYTES + _OTHER_BYTES
    figures.say(
        f"memory, {recorded_bytes / GIB:.1f} GiB recorded of a disk of {disk_bytes / GIB:.1f} GiB",
        f"RssAnon {at_first / MIB:.1f} MiB at first, at most {touched_once / MIB:.1f} MiB while "
        f"every sector was written once, {peaks.anonymous / MIB:.1f} MiB at all; "
        f"VmRSS at most {peaks.resident / MIB:.1f} MiB; bound for RssAnon {bound / MIB:.1f} MiB",
    )
    assert recorded_bytes >= total_bytes - MIB, "less was written than meant"
    assert peaks.anonymous <= bound
