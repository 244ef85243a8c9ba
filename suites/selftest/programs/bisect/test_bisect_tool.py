"""`tools/bisect` as it is typed: its options, and the refusal of versions that it cannot search."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from suites.selftest.programs.launcher import LAUNCHER
from torture.deadlines import wait_until_true
from torture.features.bisect.asked_search import SuiteTrier
from torture.features.bisect.search import PackagedVersions
from torture.files import CHECKOUT


def bisect(state: Path, *, good: str, bad: str) -> subprocess.CompletedProcess[str]:
    return LAUNCHER.run(
        CHECKOUT / "tools" / "bisect", "iscsi-always-noslog-btrfs-bothdie", "--vary", "zfs",
        "--good", good, "--bad", bad, "--state", state, "--", "--duration", "2",
    )  # fmt: skip


def test_an_unknown_version_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    done = bisect(tmp_path, good="2.1.11", bad="9.9")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no version 9.9 is packaged" in done.stderr
    assert "known: 2.1.11, 2.3.2" in done.stderr


def test_the_suites_options_belong_to_the_question(tmp_path: Path) -> None:
    bisect(tmp_path, good="2.1.11", bad="9.9")
    question = json.loads((tmp_path / "bisect.jsonl").read_text())
    assert question["others"] == ["--duration", "2"]
    done = bisect(tmp_path, good="2.3.2", bad="9.9")
    assert "is of another search" in done.stderr


def test_a_version_that_does_not_build_is_left_out_with_the_builders_words(tmp_path: Path) -> None:
    trier = SuiteTrier(
        versions=PackagedVersions(names=("no-tree", "2.3.9")),
        cell="iscsi-always-noslog-btrfs-bothdie",
        option="--zfs",
        trials=1,
        seed=1,
        folder=tmp_path,
    )
    step = trier.try_version(0, batch=0)
    assert (step.version, step.trials) == ("no-tree", 0)
    assert step.skipped.startswith(f"it cannot be built, see {tmp_path / 'no-tree-0'}")
    assert "known are: 2.3.9, 2.1.11" in step.skipped


def test_a_search_that_is_killed_leaves_neither_a_build_nor_trials(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = (
        "import sys; from pathlib import Path; from torture.features.bisect import asked_search\n"
        "asked_search._run(('sh', '-c', 'echo $$; exec sleep 60'), Path(sys.argv[1]), deadline_s=60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, log], cwd=CHECKOUT) as search:
        try:
            assert wait_until_true(lambda: _is_asleep(log), deadline_s=30, poll_s=0.1)
        finally:
            search.kill()
    assert wait_until_true(lambda: not _is_asleep(log), deadline_s=10, poll_s=0.1)


def _is_asleep(log: Path) -> bool:
    """Whether the process that wrote its id is a `sleep`; none has a command while it becomes one."""
    try:
        return b"sleep" in Path("/proc", log.read_text().strip(), "cmdline").read_bytes()
    except OSError:
        return False
