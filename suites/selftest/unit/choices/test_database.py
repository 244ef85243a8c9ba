"""The common parts of all databases: refusals, reading as far as possible, the end of a server."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from vmimages.client.load.applications import ApplicationError, Transaction
from vmimages.client.load.applications.database import Database, DatabasePerformer
from vmimages.client.load.applications.rows import TABLES, Rows, md5_of, payload_of
from vmimages.client.load.applications.server import ServerRefusedError

TRIAL = 7


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
