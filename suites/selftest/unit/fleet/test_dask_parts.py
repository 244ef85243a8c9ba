"""The parts of a campaign on Dask that need no Dask: addresses, evidence on its way, hosts, leases."""

from __future__ import annotations

import io
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock, Mock

import pytest

from suites.selftest.unit.fake_workers import ASKED, record_of, specs_of
from torture.deadlines import wait_until_true
from torture.errors import HarnessError
from torture.features.fleet import host as remote
from torture.features.fleet.connection import Slot, checked_address, connect
from torture.features.fleet.host import Host, HostOrders, Make, pack_evidence, unpack_evidence
from torture.features.fleet.workers import DaskController, DaskSite
from torture.machines.host import scratch
from torture.records.record.run_document import RunLayout
from torture.trials.workers._where import LOADED, code_digest
from torture.trials.workers.protocol import WorkerOrders

DEADLINE_S = 20.0
TRIAL = "iscsi-always-noslog-btrfs-bothdie.0000-00"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("tcp://127.0.0.1:8786", "tcp://127.0.0.1:8786"),
        ("localhost:8786", "tcp://localhost:8786"),
        ("tcp://[::1]:8786", "tcp://[::1]:8786"),
        ("tls://nas.example:8786", "tls://nas.example:8786"),
    ],
)
def test_a_safe_address_is_taken(text: str, address: str) -> None:
    assert checked_address(text) == address


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tcp://10.0.0.1:8786", "runs the code of every program"),
        ("tcp://0.0.0.0:8786", "runs the code of every program"),
        ("10.0.0.1:8786", "runs the code of every program"),
        ("tcp://localhost.example:8786", "runs the code of every program"),
        ("tcp://127.0.0.1@10.0.0.1:8786", "runs the code of every program"),
        ("ws://127.0.0.1:8786", "is no address"),
        ("tls://host", "is no address"),
        ("tcp://127.0.0.1:port", "is no address"),
    ],
)
def test_an_address_where_others_get_in_is_refused(text: str, why: str) -> None:
    with pytest.raises(HarnessError, match=why):
        checked_address(text)


def test_without_dask_the_command_to_get_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(HarnessError, match="tools/run --setup-only --workers dask"):
        connect("")


def test_tls_needs_the_fleets_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORTURE_CERTIFICATES", str(tmp_path))
    with pytest.raises(HarnessError, match="tools/fleet certificates"):
        connect("tls://127.0.0.1:1")


@pytest.fixture
def run(tmp_path: Path) -> RunLayout:
    return RunLayout(folder=tmp_path / "run")


def test_evidence_arrives_as_it_was_and_replaces_an_earlier_try(
    tmp_path: Path, run: RunLayout
) -> None:
    folder = tmp_path / "evidence"
    (folder / "inner").mkdir(parents=True)
    (folder / "text").write_text("a" * 100_000)
    (folder / "inner" / "noise").write_bytes(bytes(range(256)))
    (folder / "empty").touch()
    (folder / "link").symlink_to("/etc/passwd")
    run.evidence_of(TRIAL).mkdir(parents=True)
    (run.evidence_of(TRIAL) / "of an earlier try").touch()
    packed = pack_evidence(folder)
    assert len(packed) < 10_000
    unpack_evidence(packed, run, TRIAL)
    arrived = run.evidence_of(TRIAL)
    assert sorted(path.name for path in arrived.rglob("*")) == ["empty", "inner", "noise", "text"]
    assert (arrived / "text").read_text() == "a" * 100_000
    assert (arrived / "inner" / "noise").read_bytes() == bytes(range(256))
    unpack_evidence(pack_evidence(tmp_path / "nowhere"), run, TRIAL)
    assert arrived.exists(), "a try without evidence has none to put in its place"


def archive_with(name: str, content: bytes = b"x", mode: int = 0o644) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        archive.writestr(info, content)
    return packed.getvalue()


@pytest.mark.parametrize("name", ["../escaped", "/tmp/escaped", "a/../../escaped", "."])
def test_evidence_cannot_leave_its_folder(run: RunLayout, tmp_path: Path, name: str) -> None:
    with pytest.raises(HarnessError, match="no path below its folder"):
        unpack_evidence(archive_with(name), run, TRIAL)
    assert not run.evidence_of(TRIAL).exists()
    assert not list(tmp_path.rglob("escaped"))


def test_a_link_arrives_as_a_plain_file(run: RunLayout) -> None:
    unpack_evidence(archive_with("link", b"/etc/passwd", mode=0o120777), run, TRIAL)
    assert not (run.evidence_of(TRIAL) / "link").is_symlink()


def test_damaged_evidence_leaves_no_folder(run: RunLayout) -> None:
    packed = archive_with("recording", b"r" * 1000)
    for damaged in (packed[:100], packed.replace(b"rrrr", b"rrRr", 1), b"no zip"):
        with pytest.raises(HarnessError, match="cannot be unpacked"):
            unpack_evidence(damaged, run, TRIAL)
    assert not run.evidence_of(TRIAL).exists()


def test_the_digest_of_the_code_sees_each_file(tmp_path: Path) -> None:
    for name in ("torture/a.py", "vmimages/nas/recipe.toml", "torture/native/x.cpp"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    digests = {code_digest(tmp_path)}
    for name in ("torture/a.py", "vmimages/nas/recipe.toml", "torture/native/x.cpp"):
        (tmp_path / name).write_text("2")
        digests.add(code_digest(tmp_path))
    (tmp_path / "torture/new.py").touch()
    digests.add(code_digest(tmp_path))
    assert len(digests) == 5


class Controller:
    """A worker whose trials end when the test says so."""

    def __init__(self, orders: WorkerOrders, extra: Path | None) -> None:
        self.orders = orders
        self.extra = extra
        self.thread = threading.current_thread()
        self.is_running = False
        self.go_on = threading.Event()

    def start(self) -> None:
        self.is_running = True

    def run_plain(self, spec: dict[str, Any], *, deadline_s: float) -> dict[str, Any]:
        folder = self.orders.run.evidence_of(TRIAL)
        folder.mkdir(parents=True)
        (folder / "spec.json").write_text("{}")
        assert self.go_on.wait(DEADLINE_S)
        if not self.is_running:
            raise HarnessError("a worker died", hint="read its log")
        return {"trial": TRIAL}

    def kill(self) -> None:
        self.is_running = False
        self.go_on.set()


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Controller]:
    """The workers that hosts made, whose scratch is below this test's folder."""
    monkeypatch.setattr(scratch, "default_base", lambda: tmp_path / "scratch")
    return []


def maker(made: list[Controller]) -> Make:
    """Makes workers that this list then has."""

    def make(orders: WorkerOrders, hear: Callable[[str], None], folder: Path | None) -> Controller:
        made.append(Controller(orders, folder))
        return made[-1]

    return make


@contextmanager
def begun_host(
    made: list[Controller],
    *,
    code: str = LOADED,
    images: dict[str, str] | None = None,
    extra: dict[str, bytes] | None = None,
    lease_s: float = 60,
    sign: Callable[[], object] = lambda: None,
) -> Iterator[Host]:
    orders = HostOrders(
        site="of-a-test",
        lab={"boot": "warm", "zfs": "2.3.9"},
        images=images or {},
        zfs="2.3.9",
        code=code,
        extra=extra or {},
        lease_s=lease_s,
    )
    host = Host(orders, make=maker(made), say=lambda _message: None, sign_of_life=sign)
    remote.HOSTS[orders.site] = host
    try:
        yield host
    finally:
        remote.end(orders.site)


def scratches(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "scratch").glob("torture-*/d*"))


def test_a_host_works_in_its_own_scratch_and_leaves_nothing(
    made: list[Controller], tmp_path: Path, run: RunLayout
) -> None:
    with begun_host(made, extra={"slogs/own.py": b"# own\n"}) as host:
        host.ready()
        made[0].go_on.set()
        outcome = host.try_trial({"cell": "c"}, TRIAL, DEADLINE_S)
        assert outcome["record"] == {"trial": TRIAL}
        unpack_evidence(outcome["evidence"], run, TRIAL)
        assert (run.evidence_of(TRIAL) / "spec.json").read_text() == "{}"
        [folder] = scratches(tmp_path)
        assert made[0].orders.scratch.parent == folder
        assert made[0].orders.lab.libvirt_uri is None
        assert made[0].orders.probes
        assert made[0].extra is not None
        assert (made[0].extra / "slogs/own.py").read_bytes() == b"# own\n"
        assert made[0].thread.name == "host", "the sandbox ends with this thread, which lives on"
        assert not list((folder / "run" / "trials").iterdir())
    assert scratches(tmp_path) == []


def test_a_try_that_dies_brings_its_evidence_and_the_next_has_a_new_worker(
    made: list[Controller], run: RunLayout
) -> None:
    with begun_host(made) as host:
        host.ready()
        ender = threading.Timer(0.1, host.kill)
        ender.start()
        outcome = host.try_trial({}, TRIAL, DEADLINE_S)
        ender.join()
        assert outcome["error"] == {
            "message": "a worker died", "hint": "read its log", "is_late": False,
        }  # fmt: skip
        unpack_evidence(outcome["evidence"], run, TRIAL)
        assert (run.evidence_of(TRIAL) / "spec.json").exists()
        host.ready()
        assert [controller.is_running for controller in made] == [False, True]


def test_a_host_without_a_sign_of_its_campaign_ends(made: list[Controller], tmp_path: Path) -> None:
    beats = iter(range(10**9))
    lives = [True]
    with begun_host(made, lease_s=0.6, sign=lambda: next(beats) if lives[0] else 7) as host:
        host.ready()
        assert not wait_until_true(lambda: not made[0].is_running, deadline_s=1.5, poll_s=0.05)
        lives[0] = False
        assert wait_until_true(lambda: not made[0].is_running, deadline_s=DEADLINE_S, poll_s=0.05)
        assert wait_until_true(
            lambda: scratches(tmp_path) == [], deadline_s=DEADLINE_S, poll_s=0.05
        )
        with pytest.raises(HarnessError, match="has ended"):
            host.ready()
    assert remote.HOSTS == {}


def test_a_task_that_its_campaigns_end_has_overtaken_takes_no_slot(
    made: list[Controller], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", MagicMock())
    monkeypatch.setattr(remote, "OVER", set())
    plain = asdict(HostOrders(site="over", lab={}, images={}, zfs="2.3.9", code=LOADED))
    remote.close("over")
    with pytest.raises(HarnessError, match="has ended"):
        remote.begin(plain, maker(made))
    assert (made, remote.HOSTS, scratches(tmp_path)) == ([], {}, [])


def test_a_host_of_other_code_or_images_is_refused(made: list[Controller]) -> None:
    with (
        begun_host(made, code="0" * 64) as host,
        pytest.raises(HarnessError, match="another version of the suite"),
    ):
        host.ready()
    with (
        begun_host(made, images={"nas": "0" * 64}) as host,
        pytest.raises(HarnessError, match=r"has no nas image|of other content"),
    ):
        host.ready()
    assert made == []


def test_a_slot_of_another_process_is_not_used(made: list[Controller]) -> None:
    with begun_host(made) as host:
        with pytest.raises(HarnessError, match="has ended"):
            remote.ready("of-a-test", "another")
        with pytest.raises(HarnessError, match="has ended"):
            remote.try_trial("another", host.slot, {}, TRIAL, 1)
        remote.ready("of-a-test", host.slot)


def controller_of(run: RunLayout, outcome: dict[str, Any]) -> DaskController:
    """A slot whose only answer to a trial is this outcome."""
    slot = Slot(address="tcp://far:1", name="far", token="t")
    calls = SimpleNamespace(ask=lambda *_arguments, by_s: outcome)
    site = SimpleNamespace(calls=calls, note_success=Mock(), note_failure=Mock())
    return DaskController(cast(DaskSite, site), slot, run=run)


@pytest.mark.parametrize("end", "LC.")
def test_a_record_whose_evidence_does_not_arrive_stands(run: RunLayout, end: str) -> None:
    """Another try would be a draw by the result, or by the network's fault at the worst trials."""
    [spec] = specs_of(ASKED, trials=1)
    record = record_of(spec, end)
    outcome = {"folder": "/there", "record": record.as_json(), "evidence": b"PK no zip"}
    found = controller_of(run, outcome).run(spec, deadline_s=1)
    assert (found.verdict, found.lost) == (record.verdict, record.lost)
    assert found.reasons[-1].startswith("its evidence did not arrive: ")
    assert not run.evidence_of(spec.trial).exists()


@pytest.mark.parametrize(
    "known", [{"error": {"message": "died", "hint": "", "is_late": False}}, {}]
)
def test_a_try_that_says_nothing_and_whose_evidence_does_not_arrive_is_no_result(
    run: RunLayout, known: dict[str, Any]
) -> None:
    [spec] = specs_of(ASKED, trials=1)
    unknown = {"record": record_of(spec, "?").as_json()}
    outcome = {"folder": "/there", "evidence": b"PK no zip", **(known or unknown)}
    with pytest.raises(HarnessError, match="cannot be unpacked"):
        controller_of(run, outcome).run(spec, deadline_s=1)
