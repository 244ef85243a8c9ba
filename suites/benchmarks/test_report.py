"""The cost of a report of many trials: one process of `tools/report`, its time, memory and page."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from suites.benchmarks.figures import Figures
from suites.benchmarks.places import DISK, MIB, skip_without_room
from suites.benchmarks.settings import Settings
from suites.selftest.unit.report_records import make_records, write_run
from torture.checkout import CHECKOUT
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.records.record.run_layout import TRIALS_FILE

_SECONDS_MAX = 20.0
_MEMORY_MAX = 1024 * MIB
_PAGE_MAX = 5_000_000
_DEADLINE_S = 600
_BYTES_A_TRIAL = 1600


def test_a_report_of_many_trials_is_quick_and_small(
    figures: Figures, make_folder: Callable[[Path], Path], settings: Settings
) -> None:
    skip_without_room(DISK, 2 * settings.report_trials * _BYTES_A_TRIAL)
    folder = make_folder(DISK)
    cells = cells_of(Matrix.FULL)
    run = write_run(folder / "run", make_records(settings.report_trials, cells=cells, seed=1))
    record_mib = (run / TRIALS_FILE).stat().st_size / MIB
    output = folder / "out"
    wall_s, cpu_s, peak_bytes = _timed([CHECKOUT / "tools" / "report", run, "--output", output])
    page_bytes = (output / "report.html").stat().st_size
    what = f"report of {settings.report_trials:,} trials of {len(cells)} cells"
    figures.say(
        what,
        f"{wall_s:.1f} s ({cpu_s:.1f} s of a processor) for {record_mib:.0f} MiB of records, bound < "
        f"{_SECONDS_MAX:g} s; at most {peak_bytes / MIB:.0f} MiB resident, bound < "
        f"{_MEMORY_MAX / MIB:.0f} MiB; page of {page_bytes / 1e6:.2f} MB, bound < {_PAGE_MAX / 1e6:g} MB",
    )
    assert peak_bytes < _MEMORY_MAX
    assert page_bytes < _PAGE_MAX
    assert wall_s < _SECONDS_MAX


def _timed(command: list[str | Path]) -> tuple[float, float, int]:
    """Seconds on the clock and on processors, and peak memory in bytes, of a command that succeeds."""
    begun_s = time.monotonic()
    process = subprocess.Popen([sys.executable, *command])
    try:
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            assert time.monotonic() - begun_s < _DEADLINE_S, "the report does not come to an end"
            time.sleep(0.02)
        process.returncode = os.waitstatus_to_exitcode(ended[1])
    finally:
        if process.returncode is None:
            process.kill()
            process.wait(timeout=60)
    wall_s = time.monotonic() - begun_s
    assert process.returncode == 0
    used = ended[2]
    return wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
