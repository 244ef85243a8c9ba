"""`tools/run` refuses mistakes before it sets anything up."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable

import pytest

from torture.checkout import CHECKOUT
from torture.errors import HarnessError

Started = Callable[..., int]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """Runs the tool's `main` with these arguments, over a set-up that fails."""

    def run(*arguments: str) -> int:
        def fail(**_: object) -> bool:
            raise HarnessError("the set-up began")

        monkeypatch.setattr("torture.setup.provision.provision", fail)
        monkeypatch.setattr(sys, "path", [*sys.path])
        code: int = runpy.run_path(str(CHECKOUT / "tools" / "run"))["main"]([*arguments])
        return code

    return run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cell", "iscsi-always-noslog-btfrs-bothdie"), "ERROR: --cell: 'btfrs' in "),
        (("--cell=icsi", "--collect-only"), "ERROR: --cell: 'icsi' in "),
        (("--matrix", "quik"), "'quik' is not one of quick, default, full"),
        (("--axis", "logbais=throughput"), "ERROR: --axis: no axis is called 'logbais'"),
        (
            ("--axis", "recordsize=record4k", "--cell", "iscsi-always-noslog-btrfs-bothdie"),
            "--axis: ",
        ),
        (("--zfs", "/nowhere"), "--zfs: there is no folder /nowhere; known are: 2.3.9"),
        (
            ("--zfs=2.1.11", "--axis", "zvol_use_blk_mq=blkmq"),
            "ERROR: --zfs: OpenZFS 2.1.11 has no",
        ),
        (("--property", "sync=always"), "ERROR: --property: sync is an axis of its own"),
        (("--tunable", "zil_slog_bulk"), "ERROR: --tunable: 'zil_slog_bulk' is no setting"),
        (("--cell",), "--cell: expected one argument"),
    ],
)
def test_a_typo_is_refused_before_the_set_up(
    started: Started, arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert started("suites/powercut", *arguments) == pytest.ExitCode.USAGE_ERROR
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("suites/selftest", "-k", "not matrix", "-m", "pure", "--cel", "x"),
        ("suites/powercut", "--matrix", "quick", "--trials=3", "--axis", "logbias=throughput"),
        ("suites/powercut", "--property", "recordsize=8K", "--tunable=zil_slog_bulk=1"),
        ("suites/powercut", "--zfs", str(CHECKOUT)),
    ],
)
def test_the_set_up_begins_where_only_pytest_can_tell(
    started: Started, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert started(*arguments) == 4
    assert capsys.readouterr().err == "set-up failed: the set-up began\n"
