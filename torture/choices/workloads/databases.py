"""Databases: SQLite, PostgreSQL and MariaDB. Each setting of `databases.toml` is a load."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads.protocol import CLIENT_IMAGE, Workload
from torture.facts.axes.axis import Choice, choice_of, table_beside


def _choices_of(application: str, table: dict[str, Any]) -> Iterator[Choice[Workload]]:
    """A workload for each setting of an application."""
    for row in table["settings"]:
        workload = ApplicationWorkload(
            name=row["name"],
            application=application,
            settings=row["guest"],
            has_one_order=row.get("has_one_order", True),
            image=table.get("image", CLIENT_IMAGE),
        )
        yield choice_of(row, workload)


_TABLES = table_beside(__file__)
CHOICES: tuple[Choice[Workload], ...] = tuple(
    choice for name, table in _TABLES.items() for choice in _choices_of(name, table)
)
