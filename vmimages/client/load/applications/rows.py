"""Self-describing rows: a database writer's transactions, and their read-back."""

from __future__ import annotations

import hashlib

from . import LAZY_TRANSACTION, TRANSACTION, Transaction, TransactionPlanner

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

TABLES = ("entries", "others")
"""A transaction's rows go into these in turn."""
TOTALS = "totals"
"""Each writer's number of transactions, counted by the transactions themselves."""
_ROWS_MAX = 4
_PAYLOAD_BYTES_MAX = 3000
_LARGE_BYTES_MAX = 30_000
"""Beyond a page of InnoDB and far beyond a row of PostgreSQL: kept apart from its row."""
_LARGE_IN = 8
_SETTLE_IN = 4


def payload_of(trial: int, seq: int, row: int, size_bytes: int) -> bytes:
    """The content of a row: a function of its identity, with a size that its first bytes do not show."""
    block = hashlib.sha256(b"%d %d %d" % (trial, seq, row)).digest()
    return (block * (size_bytes // len(block) + 1))[:size_bytes]


def md5_of(payload: bytes) -> str:
    """The form in which databases print it."""
    return hashlib.md5(payload, usedforsecurity=False).hexdigest()


def rows_by_table(trial: int, seq: int, sizes: list[int]) -> dict[str, list[tuple[int, bytes]]]:
    """A transaction's rows: for each table with some, their numbers and payloads."""
    rows: dict[str, list[tuple[int, bytes]]] = {}
    for row, size in enumerate(sizes):
        table = TABLES[row % len(TABLES)]
        rows.setdefault(table, []).append((row, payload_of(trial, seq, row, size)))
    return rows


class RowsPlanner(TransactionPlanner):
    """Transactions of a few rows, some large; one in some is durable where the others are lazy."""

    def __init__(self, job: dict[str, Any], writer: int) -> None:
        super().__init__(job, writer)
        self._is_lazy = job["commits"] == "lazy"

    def draw(self) -> Transaction:
        """The next transaction: the sizes of its rows."""
        is_durable = not self._is_lazy or self.dice.below(_SETTLE_IN) == 0
        sizes = [self._size() for _ in range(1 + self.dice.below(_ROWS_MAX))]
        return Transaction(
            kind=TRANSACTION if is_durable else LAZY_TRANSACTION, what={"sizes": sizes}
        )

    def _size(self) -> int:
        is_large = self.dice.below(_LARGE_IN) == 0
        return 1 + self.dice.below(_LARGE_BYTES_MAX if is_large else _PAYLOAD_BYTES_MAX)


class Rows:
    """The rows that a database returned, and each writer's counted transactions."""

    def __init__(self, trial: int) -> None:
        self._trial = trial
        self._rows: dict[int, dict[int, tuple[str, int, int, str]]] = {}
        self._writers: dict[int, int] = {}
        self.complaints: list[str] = []

    def add(self, table: str, rows: Iterable[tuple[int | str | None, ...]]) -> None:
        """Rows of a table: transaction, row, how many it had, writer, bytes, md5 of the payload.

        The load writes no NULL: a NULL comes from a damaged page.
        """
        for found in rows:
            if None in found:
                self.complaints.append(f"a row of {table} has a NULL: {found}")
                continue
            seq, row, count, writer, size = (int(value or 0) for value in found[:5])
            digest = str(found[5])
            of_transaction = self._rows.setdefault(seq, {})
            if row in of_transaction:
                self.complaints.append(f"row {row} of transaction {seq} is there twice")
            of_transaction[row] = (table, count, size, digest)
            self._writers[seq] = writer

    def compare(self, totals: Iterable[tuple[int | None, int | None]]) -> None:
        """Complain where the counters differ from the rows."""
        counted: dict[int, int] = {}
        for writer, count in totals:
            if writer is None or count is None:
                self.complaints.append(f"a row of {TOTALS} has a NULL: {(writer, count)}")
            else:
                counted[writer] = count
        seen: dict[int, int] = {}
        for writer in self._writers.values():
            seen[writer] = seen.get(writer, 0) + 1
        for writer in sorted(counted.keys() | seen.keys()):
            if counted.get(writer) != seen.get(writer, 0):
                self.complaints.append(
                    f"{counted.get(writer)} transactions of writer {writer} are counted, "
                    f"{seen.get(writer, 0)} are there"
                )

    def whole_and_damaged(self) -> tuple[list[int], dict[int, str]]:
        """The transactions that are as they were written; and the others, with their difference."""
        whole: list[int] = []
        parts: dict[int, str] = {}
        for seq in sorted(self._rows):
            wrong = self._wrong_with(seq)
            if wrong:
                parts[seq] = wrong
            else:
                whole.append(seq)
        return whole, parts

    def _wrong_with(self, seq: int) -> str:
        seen = self._rows[seq]
        count = next(iter(seen.values()))[1]
        if sorted(seen) != list(range(count)):
            return f"rows {sorted(seen)} of {count}"
        for row, (table, _, size, digest) in seen.items():
            if table != TABLES[row % len(TABLES)]:
                return f"row {row} is in {table}"
            if digest != md5_of(payload_of(self._trial, seq, row, size)):
                return f"row {row} holds something else"
        return ""
