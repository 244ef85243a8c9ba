"""The common parts of database servers: drawn writes, findings, start and end, the image."""

from __future__ import annotations

import getpass
import json
import signal
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from fixtures import campaigns
from fixtures.options import Options
from torture.choices.matrix.cells import Cell
from torture.choices.workloads import CHOICES, image_needed
from torture.choices.workloads._application import DATABASES_IMAGE, ApplicationWorkload
from torture.choices.workloads.protocol import CLIENT_IMAGE, Brought, Place
from torture.errors import HarnessError
from torture.facts.zfs.versions import DEFAULT
from torture.machines.images import IMAGES
from torture.machines.images.recipes import image_names, images_of_every_run
from torture.machines.lab.lab import LabSettings
from torture.trials.plan.draw import draw_trials
from vmimages.client.load.applications import ApplicationError, Transaction, application_of, server
from vmimages.client.load.applications.database import Database, DatabasePerformer, _ask
from vmimages.client.load.applications.rows import (
    TABLES,
    Rows,
    RowsPlanner,
    md5_of,
    payload_of,
)
from vmimages.client.load.applications.server import (
    CheckHungError,
    Server,
    ServerRefusedError,
    complaints_of,
)

APPLICATIONS = [choice.value for choice in CHOICES if isinstance(choice.value, ApplicationWorkload)]
DATABASES = [workload for workload in APPLICATIONS if workload.image == DATABASES_IMAGE]
TRIAL = 7
ME = getpass.getuser()


def transaction(seq: int, *, writer: int = 0) -> dict[str, list[Any]]:
    """The rows of a transaction of three, by their table."""
    rows: dict[str, list[Any]] = {table: [] for table in TABLES}
    for row, size in enumerate((1, 2000, 30_000)):
        digest = md5_of(payload_of(TRIAL, seq, row, size))
        rows[TABLES[row % 2]].append((seq, row, 3, writer, size, digest))
    return rows


def seen(*transactions: dict[str, list[Any]]) -> Rows:
    rows = Rows(TRIAL)
    for one in transactions:
        for table, found in one.items():
            rows.add(table, found)
    return rows


def test_transactions_that_are_as_they_were_written_are_whole() -> None:
    rows = seen(transaction(5), transaction(9, writer=1), transaction(6))
    rows.compare([(0, 2), (1, 1), (2, 0)])
    assert rows.whole_and_damaged() == ([5, 6, 9], {})
    assert rows.complaints == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows["others"].clear(), "rows [0, 2] of 3"),
        (lambda rows: rows["entries"].pop(), "rows [0, 1] of 3"),
        (lambda rows: rows["others"].append(rows["entries"].pop()), "row 2 is in others"),
        (
            lambda rows: rows["others"].__setitem__(0, (5, 1, 3, 0, 1999, rows["others"][0][5])),
            "row 1 holds something else",
        ),
    ],
)
def test_a_transaction_that_is_otherwise_is_in_part(change: Any, said: str) -> None:
    rows = transaction(5)
    change(rows)
    assert seen(rows, transaction(6)).whole_and_damaged() == ([6], {5: said})


def test_rows_of_another_trial_are_something_else() -> None:
    rows = Rows(TRIAL + 1)
    for table, found in transaction(5).items():
        rows.add(table, found)
    assert list(rows.whole_and_damaged()[1]) == [5]


def test_a_row_that_is_there_twice_is_complained_of() -> None:
    rows = transaction(5)
    rows["others"] *= 2
    assert seen(rows).complaints == ["row 1 of transaction 5 is there twice"]


@pytest.mark.parametrize("totals", [[(0, 2)], [(0, 0)], [], [(0, 1), (1, 1)]])
def test_counters_that_say_something_else_than_the_rows_are_complained_of(
    totals: list[tuple[int, int]],
) -> None:
    rows = seen(transaction(5))
    rows.compare(totals)
    assert len(rows.complaints) == 1
    assert rows.whole_and_damaged() == ([5], {})


@pytest.mark.parametrize("commits", ["durable", "lazy"])
def test_of_lazy_commits_some_are_durable_and_of_durable_ones_all(commits: str) -> None:
    planner = RowsPlanner({"seed": 3, "commits": commits}, 1)
    drawn = [planner.draw() for _ in range(400)]
    durable = sum(one.is_durable for one in drawn)
    assert durable == 400 if commits == "durable" else 60 < durable < 140
    sizes = [size for one in drawn for size in one.what["sizes"]]
    assert {len(one.what["sizes"]) for one in drawn} == {1, 2, 3, 4}
    assert min(sizes) >= 1
    assert max(sizes) > 8192
    assert json.loads(json.dumps(drawn[0].what)) == drawn[0].what


def a_server(folder: Path, script: str) -> Server:
    """A server that is this script."""
    return Server(
        argv=["sh", "-c", script], folder=str(folder / "server"), user=ME, ready="ready for"
    )


def test_a_server_is_waited_for_and_stopped_by_its_signal(tmp_path: Path) -> None:
    script = 'trap "echo stopped; exit 0" TERM; sleep 0.1; echo ready for you'
    one = a_server(tmp_path, f"{script}; while :; do sleep 0.05; done")
    one.start(deadline_s=20)
    assert one.stop(signal.SIGTERM)
    assert one.log() == ["ready for you", "stopped"]


def test_a_server_that_ends_says_why_and_one_that_is_never_ready_too(tmp_path: Path) -> None:
    ends = a_server(tmp_path, "echo PANIC: no checkpoint record; exit 3")
    with pytest.raises(ServerRefusedError, match="ended with 3: PANIC: no checkpoint record"):
        ends.start(deadline_s=20)
    hangs = a_server(tmp_path, "echo redo starts; exec sleep 60")
    with pytest.raises(ServerRefusedError, match=r"not ready within 0\.3 s: redo starts"):
        hangs.start(deadline_s=0.3)
    assert hangs.stop(signal.SIGKILL)


def test_a_server_that_does_not_stop_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_STOP_DEADLINE_S", 0.2)
    script = 'trap "" TERM; echo ready for you; while :; do sleep 0.05; done'
    stubborn = a_server(tmp_path, script)
    stubborn.start(deadline_s=20)
    assert not stubborn.stop(signal.SIGTERM)
    assert stubborn.stop(signal.SIGTERM), "it is gone"


@pytest.mark.parametrize(
    ("script", "fine", "complaints"),
    [
        ("echo checked; exit 0", "", []),
        ("echo heap table is broken; exit 2", "", ["sh: heap table is broken"]),
        ("exit 2", "", ["sh returned 2"]),
        ("echo torture.entries OK; echo torture.others OK", "OK", []),
        ("echo a OK; echo 'Error: b is corrupt' >&2", "OK", ["sh: Error: b is corrupt"]),
    ],
)
def test_the_output_of_a_checker_is_a_complaint_unless_all_is_fine(
    script: str, fine: str, complaints: list[str]
) -> None:
    assert complaints_of(["sh", "-c", script], fine=fine, user=ME) == complaints


def test_a_checker_that_does_not_end_has_found_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_CHECK_DEADLINE_S", 0.1)
    with pytest.raises(CheckHungError, match=r"sleep did not end within 0\.1 s"):
        complaints_of(["sleep", "60"], user=ME)


def test_rows_are_read_although_a_checker_does_not_end() -> None:
    def hangs() -> list[str]:
        raise CheckHungError("pg_amcheck did not end")

    rows = Rows(TRIAL)
    assert _ask(hangs, rows) == ["pg_amcheck did not end"]
    assert _ask(lambda: ["heap is broken"], rows) == []
    assert rows.complaints == ["heap is broken"]


@pytest.mark.parametrize("column", range(6))
def test_a_null_from_a_damaged_page_is_a_complaint(column: int) -> None:
    """Its row is gone, and the rows beside it are read."""
    rows, whole = transaction(5), transaction(6)
    damaged = list(rows["entries"][0])
    damaged[column] = None
    rows["entries"][0] = tuple(damaged)
    found = seen(rows, whole)
    found.compare([(0, 2), (1, None)])
    assert found.whole_and_damaged()[0] == [6]
    assert "has a NULL" in found.complaints[0]
    assert "a row of totals has a NULL: (1, None)" in found.complaints


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("postgres", ["fsync=on", "full_page_writes=on", "synchronous_commit=on"]),
        ("postgres_async", ["fsync=on", "full_page_writes=on", "synchronous_commit=off"]),
        ("mariadb", ["--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite=ON"]),
        ("mariadb_flush2", ["--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=ON"]),
        ("mariadb_flush0", ["--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=ON"]),
        ("mariadb_binlog", ["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"]),
        ("mariadb_binlog0", ["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=0"]),
    ],
)
def test_a_server_gets_the_setting_that_its_load_is_named_after(
    name: str, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("psycopg2", "pymysql"):  # Debian's, in the guest alone
        monkeypatch.setitem(sys.modules, module, cast("ModuleType", SimpleNamespace(Error=OSError)))
    monkeypatch.setattr(sys, "path", [*sys.path])
    workload = next(workload for workload in DATABASES if workload.name == name)
    application: Any = application_of(workload.job(seed=1, place=Place(directory="/mnt")))
    assert set(options) <= set(application.server.argv)
    assert any("binlog" in word for word in application.server.argv) == ("binlog" in name)
    planner = application.planner(0)
    is_lazy = not all(planner.draw().is_durable for _ in range(50))
    assert is_lazy == (name not in ("postgres", "mariadb", "mariadb_binlog"))
    stopped_well: Any = application_of(workload.job(seed=2, place=Place(directory="/mnt")))
    assert set(stopped_well.server.argv) > set(application.server.argv), "it writes more often"


@pytest.mark.parametrize("workload", APPLICATIONS, ids=lambda workload: workload.name)
def test_preparation_is_the_same_for_every_seed(workload: ApplicationWorkload) -> None:
    brought = Brought(
        load="fio_own",
        path="own.fio",
        sha256="0" * 64,
        text="[job]\nrw=write\nsize=1m\nverify=crc32c\n",
    )
    place = Place(directory="/mnt", brought=(brought,))
    one, other = (workload.job(seed=seed, place=place) for seed in (1, 2))
    assert workload.prepare(one) == workload.prepare(other)


def test_servers_boot_an_image_that_no_other_load_needs() -> None:
    assert {workload.application for workload in DATABASES} == {"postgres", "mariadb"}
    of_others = {choice.value.image for choice in CHOICES if choice.value not in DATABASES}
    assert {workload.image for workload in DATABASES} == {DATABASES_IMAGE} <= set(image_names())
    assert DATABASES_IMAGE not in of_others
    assert DATABASES_IMAGE not in images_of_every_run()


def test_one_load_with_an_image_of_its_own_decides_for_those_beside_it() -> None:
    ledger = next(choice.value for choice in CHOICES if choice.name == "ledger")
    assert image_needed([ledger]) == CLIENT_IMAGE
    assert image_needed([ledger, DATABASES[0]]) == DATABASES_IMAGE
    with pytest.raises(HarnessError, match="client_databases, client_of_another"):
        image_needed([DATABASES[0], replace(DATABASES[1], image="client_of_another")])
    assert image_needed([ledger], attached_by="client_multipath") == "client_multipath"
    with pytest.raises(HarnessError, match="client_databases, client_multipath"):
        image_needed([DATABASES[0]], attached_by="client_multipath")


@pytest.mark.parametrize(
    ("cells", "zfs", "built"),
    [
        (["iscsi-always-noslog-ext4-bothdie"], DEFAULT, []),
        (["iscsi-always-noslog-ext4-sqlite_full-bothdie"], DEFAULT, []),
        (["iscsi-always-noslog-ext4-bothdie"], "2.4.4", [*IMAGES]),
        (
            ["iscsi-always-noslog-ext4-bothdie", "iscsi-standard-noslog-xfs-postgres-nasonly"],
            DEFAULT,
            [DATABASES_IMAGE],
        ),
        (["iscsi-always-noslog-ext4-mariadb-bothdie"], "2.4.4", [*IMAGES, DATABASES_IMAGE]),
    ],
)
def test_a_run_builds_the_images_of_its_cells_and_nothing_else(
    cells: list[str], zfs: str, built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(campaigns, "ensure_all", lambda names, **_: asked.extend(names))
    specs = draw_trials([Cell.parse(cell) for cell in cells], trials=1, run_seed=1, load_ms=50)
    lab = LabSettings(zfs=zfs, warm_states=Path("warm"))
    options = cast(Options, SimpleNamespace(lab=lab, zfs_tree=None, linux_trees=(), patches=()))
    campaigns._build_images(options, specs)
    assert asked == sorted(built)


# The common parts of all databases: refusals, reading as far as possible, the end of a server.


class Said(Exception):
    """The exception of a driver."""


class Dummy(Database):
    """A database whose driver refuses the second table and every commit."""

    program = "dummyd"
    error = Said
    schema = ("CREATE",)
    settled = signal.SIGTERM
    at_once = signal.SIGKILL

    def __init__(self, job: dict[str, Any], server: Any) -> None:
        super().__init__(job)
        self.server = server

    def connect(self, *, is_new: bool = False) -> Any:
        cursor = SimpleNamespace(execute=lambda _statement: None, fetchall=list)
        return SimpleNamespace(cursor=lambda: cursor, close=lambda: None, commit=lambda: None)

    def commit(self, connection: Any, transaction: Any, performer: DatabasePerformer) -> None:
        raise Said(f"no {performer.seq} of {performer.writer}")

    def read_table(self, cursor: Any, table: str, rows: Rows) -> None:
        if table == TABLES[1]:
            raise Said(f"no {table}")
        payload = payload_of(TRIAL, 3, 0, 1)
        rows.add(table, [(3, 0, 1, 0, 1, md5_of(payload))])

    def check(self) -> list[str]:
        return ["running"]

    def check_stopped(self) -> list[str]:
        return ["stopped"]


class DummyServer:
    """It starts unless it has a refusal, and keeps the signals that ended it."""

    def __init__(self, refusal: str = "") -> None:
        self.refusal = refusal
        self.signals: list[signal.Signals] = []

    def start(self, *, deadline_s: float) -> None:
        if self.refusal:
            raise ServerRefusedError(self.refusal)

    def stop(self, number: signal.Signals) -> bool:
        self.signals.append(number)
        return number is signal.SIGTERM

    def log(self) -> list[str]:
        return ["a line"]

    def last_words(self) -> str:
        return "its last"


def dummy(server: DummyServer, *, seed: int = 0) -> Dummy:
    return Dummy({"trial": TRIAL, "seed": seed, "writers": 1, "directory": "/mnt"}, server)


def test_a_table_that_cannot_be_read_is_complained_of_and_the_others_are_known() -> None:
    server = DummyServer()
    read = dummy(server).read()
    refused, counted, *checked = read["complaints"]
    assert refused == f"Said('no {TABLES[1]}')"
    assert counted == "None transactions of writer 0 are counted, 1 are there"
    assert checked == ["running", "stopped"]
    assert read["whole"] == [3]
    assert (read["refused"], read["log"], server.signals) == ("", ["a line"], [signal.SIGTERM])


def test_a_server_that_does_not_start_again_is_refused_by_its_name() -> None:
    server = DummyServer(refusal="it is broken")
    read = dummy(server).read()
    assert (read["refused"], read["whole"]) == ("dummyd: it is broken", [])
    assert server.signals == [signal.SIGKILL]


def test_a_commit_that_its_server_refuses_is_an_error_in_both_their_words() -> None:
    performer = dummy(DummyServer()).performer(2)
    with pytest.raises(ApplicationError, match=r"no 7 of 2.*the server: its last"):
        performer.perform(Transaction(kind="transaction", what={}), 7)
    assert "no 7 of 2" in performer.step


@pytest.mark.parametrize(("seed", "ended_by"), [(0, signal.SIGTERM), (1, signal.SIGKILL)])
def test_one_seed_in_two_ends_a_server_at_once(seed: int, ended_by: signal.Signals) -> None:
    server = DummyServer()
    dummy(server, seed=seed).end()
    assert server.signals == [ended_by]
