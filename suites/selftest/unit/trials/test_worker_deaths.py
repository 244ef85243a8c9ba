"""How a worker's death is said: its signal first, and its own words without libvirt's warnings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from torture.errors import HarnessError
from torture.trials.workers import local
from torture.trials.workers.local import LocalController, ending_in_words, last_words

WARNING = "2026-11-24 07:28:00.540+0000: 4829: warning : virProcessKillPainfully:1 : Timed out\n"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-signal.SIGKILL, "died of SIGKILL"),
        (128 + signal.SIGSEGV, "died of SIGSEGV"),
        (3, "ended with exit code 3"),
        (0, "ended with exit code 0"),
        (255, "ended with exit code 255"),
        (None, "does not answer"),
    ],
)
def test_the_signal_or_the_exit_code_is_named(code: int | None, words: str) -> None:
    assert ending_in_words(code) == words


def test_warnings_of_libvirt_are_not_the_workers_last_words() -> None:
    log = "Traceback\n" + WARNING * 6 + "MemoryError\n" + WARNING * 6
    assert last_words(log) == ["Traceback", "MemoryError"]
    assert last_words(WARNING * 6) == []
    assert last_words("\n".join(map(str, range(9)))) == list("345678")


def controller_of(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalController:
    """A worker that is this script, in no sandbox."""
    monkeypatch.setattr(local, "sandboxed", lambda _argv: (sys.executable, "-c", script))
    orders: Any = type("Orders", (), {"as_json": lambda self: {}, "probes": False})()
    return LocalController(orders, log=tmp_path / "w0.log", hear=lambda _text: None)


def test_a_worker_that_dies_reports_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        f"import os, sys; sys.stderr.write({WARNING!r} + 'last\\n'); sys.stderr.flush(); os.abort()"
    )
    controller = controller_of(script, tmp_path, monkeypatch)
    with pytest.raises(HarnessError, match=r"^a worker died of SIGABRT\nlast\n"):
        controller.start()


def test_an_interrupt_of_the_terminal_does_not_reach_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C goes to all processes of the terminal's group (tty_ioctl(4), ISIG)."""
    script = 'import sys; print(\'{"say": "ready"}\', flush=True); sys.stdin.read()'
    controller = controller_of(script, tmp_path, monkeypatch)
    controller.start()
    process = controller._process
    assert isinstance(process, subprocess.Popen)
    try:
        assert os.getpgid(process.pid) != os.getpgid(0)
        assert os.getsid(process.pid) != os.getsid(0)
    finally:
        controller.kill()
    assert process.poll() is not None
