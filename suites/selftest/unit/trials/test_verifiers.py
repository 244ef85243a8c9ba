"""The write verifiers of an NFS server's two lives: kept where a client that lived on shows both."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.facts.evidence.folder import VERIFIERS
from torture.facts.evidence.requests import FILE_REQUESTS, FileKind, FileRequest
from torture.records.record.advertised import Advertised
from torture.records.record.specs import TrialSpec
from torture.trials.trial.courses import cut_course
from torture.trials.trial.promises.of_disk import keep_verifiers, listen_on_wire
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.trial import Trial

_LIVES, _DIES = "nfs4-standard-noslog-files-nasonly", "nfs4-standard-noslog-files-bothdie"
_DISK = "nvme_tcp-standard-noslog-ext4-nasonly"


def _request(verifier: str) -> FileRequest:
    return FileRequest(kind=FileKind.WRITE, submitted_ns=1, completed_ns=2, verifier=verifier)


def _trial(folder: Path, cell: str) -> Trial:
    return Trial.begin(
        TrialSpec(cell=Cell.parse(cell), index=0, seed=1, load_ms=1000),
        folder=folder,
        scratch=folder / "scratch",
        nas_host="nas",
    )


def _kept(folder: Path, *, cell: str, before: list[str], after: list[str]) -> dict[str, Any] | None:
    lines = "".join(json.dumps(asdict(_request(verifier))) + "\n" for verifier in before)
    (folder / FILE_REQUESTS).write_text(lines)
    trace = SimpleNamespace(requests=lambda: tuple(map(_request, after)))
    machines: Any = SimpleNamespace(disk_trace=trace)
    keep_verifiers(_trial(folder, cell), machines, EvidenceWriter(folder=folder))
    document = folder / VERIFIERS
    return json.loads(document.read_text()) if document.exists() else None


def test_the_verifiers_of_both_lives_are_kept(tmp_path: Path) -> None:
    kept = _kept(tmp_path, cell=_LIVES, before=["", "b", "a", "b"], after=["c", ""])
    assert kept == {"before": ["a", "b"], "after": ["c"]}


@pytest.mark.parametrize(
    ("of", "before", "after"),
    [
        (_LIVES, ["a"], []),
        (_LIVES, [""], ["b"]),
        (_DIES, ["a"], ["b"]),
        (_DISK, ["a"], ["b"]),
    ],
)
def test_nothing_is_kept_where_one_life_shows_none(
    tmp_path: Path, of: str, before: list[str], after: list[str]
) -> None:
    assert _kept(tmp_path, cell=of, before=before, after=after) is None


def test_a_wire_that_cannot_be_read_ends_no_trial(tmp_path: Path) -> None:
    def requests() -> NoReturn:
        raise HarnessError("the wire is garbled")

    (tmp_path / FILE_REQUESTS).write_text(json.dumps(asdict(_request("a"))) + "\n")
    machines: Any = SimpleNamespace(disk_trace=SimpleNamespace(requests=requests))
    keep_verifiers(_trial(tmp_path, _LIVES), machines, EvidenceWriter(folder=tmp_path))
    seen = json.loads((tmp_path / VERIFIERS).read_text())
    assert seen == {"unread": "the wire is garbled"}
    assert Advertised().with_verifiers(seen) == Advertised()


@pytest.mark.parametrize(("of", "spans"), [(_LIVES, 2), (_DIES, 1), (_DISK, 1)])
def test_the_wire_is_heard_again_where_a_client_of_files_lives_on(
    tmp_path: Path, of: str, spans: int
) -> None:
    files: list[Path] = []

    def listen(file: Path) -> Any:
        file.write_bytes(b"")
        files.append(file)
        return SimpleNamespace(file=file, stop=lambda: None)

    trial = _trial(tmp_path, of)
    assert trial.plan.second is None
    lab = SimpleNamespace(record_nas_packets=listen)
    shelf = SimpleNamespace(directory=tmp_path)
    machines: Any = SimpleNamespace(lab=lab, shelf=shelf, disk_trace=None)
    listen_on_wire(trial, machines)
    machines.disk_trace.requests()
    assert len(files) == spans


def test_the_verifiers_are_kept_once_the_nas_has_read_all_of_a_client_that_lived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []

    def notes(name: str) -> Callable[..., bool]:
        def note(*_parts: Any, **_words: Any) -> bool:
            happened.append(name)
            return True

        return note

    for step in ("go_on", "stop_client", "wait_until_idle", "keep_verifiers"):
        monkeypatch.setattr(cut_course, step, notes(step))
    machines: Any = SimpleNamespace(begin_checker=notes("checker"))
    client: Any = SimpleNamespace(kill=notes("kill"))
    returned, loads = cast("Any", SimpleNamespace(nas=object())), cast("Any", None)
    evidence = EvidenceWriter(folder=tmp_path)
    trial = _trial(tmp_path, _LIVES)
    assert cut_course._live_on(trial, machines, evidence, loads, returned, client) is returned
    assert happened == [
        "go_on", "stop_client", "kill", "checker", "wait_until_idle", "keep_verifiers",
    ]  # fmt: skip
