"""A step of a search: which images it builds for the version that it tries."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torture.trials.bisect import suite_trier
from torture.trials.bisect.suite_trier import SuiteTrier


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--zfs", ["--zfs", "V"]),
        ("--linux", ["--linux", "V"]),
        ("--linux-nas", ["nas", "--linux", "V"]),
        ("--linux-client", ["client", "--linux", "V"]),
    ],
)
def test_only_the_machine_that_varies_is_built(
    option: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def run(argv: Any, log: Path, **_words: Any) -> int:
        ran.append([str(word) for word in argv])
        log.write_text("no compiler\n")
        return 1

    monkeypatch.setattr(suite_trier, "_run", run)
    versions: Any = SimpleNamespace(names=("V",), choice=lambda _number: "V")
    trier = SuiteTrier(
        versions=versions, cell="c", option=option, trials=4, seed=1, folder=tmp_path
    )
    step = trier.try_version(0, batch=0)
    assert [argv[argv.index("build") + 1 :] for argv in ran] == [words]
    assert "no compiler" in step.skipped
