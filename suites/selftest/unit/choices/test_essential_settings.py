"""The settings that each cell proves, changed or not: a weaker one and a stronger one are seen."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from torture.choices.matrix.cells import Cell
from torture.machines.nas.settings import essentials_of

ZPOOL = """tank\t12G\t1M
  mirror-0\t4G\t1M
    virtio-data0\t-\t-
    virtio-data1\t-\t-
logs\t-\t-
  {log}\t1G\t0
    virtio-slog0\t-\t-
    1234567890\t-\t-
"""
"""`zpool list -Hv` of OpenZFS 2.3.9, of a pool without one leg of its log."""


def asked_of(cell: Cell, folder: Path, *, get: str, zpool: str, exports: str) -> dict[str, bool]:
    """Whether each essential setting of a cell is in effect, where ZFS and exportfs say so."""
    for name, said in {"zfs": get, "zpool": zpool, "exportfs": exports}.items():
        (folder / f"{name}.txt").write_text(said)
        (folder / name).write_text(f"#!/bin/sh\ncat {folder}/{name}.txt\n")
        (folder / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    every = [one for one in essentials_of(cell) if "cacheflush" not in one.name]
    done = subprocess.run(
        ["sh", "-c", "\n".join(["set -eu", *(one.script for one in every)])],
        env=environment, check=True, timeout=20, capture_output=True, text=True,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    return {one.name: line == one.expected for one, line in zip(every, lines, strict=True)}


@pytest.mark.parametrize(
    ("get", "log", "option", "otherwise"),
    [
        ("always\nlatency\n", "mirror-1", "sync", []),
        ("standard\nlatency\n", "mirror-1", "sync", ["sync and logbias"]),
        ("always\nthroughput\n", "mirror-1", "sync", ["sync and logbias"]),
        ("always\nlatency\n", "virtio-slog0", "sync", ["vdevs of the pool"]),
        ("always\nlatency\n", "mirror-1", "async", ["export"]),
    ],
)
def test_a_weaker_and_a_stronger_setting_are_seen(
    get: str, log: str, option: str, otherwise: list[str], tmp_path: Path
) -> None:
    cell = Cell.parse("nfs3-always-mirror-mirrored-files-bothdie")
    seen = asked_of(
        cell,
        tmp_path,
        get=get,
        zpool=ZPOOL.format(log=log),
        exports=f"/tank/vm  *({option},wdelay,hide,no_subtree_check,fsid=0,sec=sys,rw,insecure)\n",
    )
    assert [name for name, is_in_effect in seen.items() if not is_in_effect] == otherwise


def test_each_tunable_that_turns_flushes_off_is_looked_at() -> None:
    for middle, expected in {"noslog": "0 0", "noslog-nocacheflush": "1 0"}.items():
        asked = {
            one.name: one.expected
            for one in essentials_of(Cell.parse(f"iscsi-always-{middle}-ext4-bothdie"))
        }
        assert asked["zfs_nocacheflush and zil_nocacheflush"] == expected
