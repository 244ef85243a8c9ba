"""The failure of a link and a handover, with a played NAS and a clock that does not wait."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from torture.choices.matrix.cells import TRANSPORT, Cell
from torture.facts.evidence.cut_document import LinkFailure
from torture.trials.trial import outage
from torture.trials.trial.outage import fail_link

_DEADLINE_S = 120


class _Rig:
    """Machines and a load that note what happens to them."""

    def __init__(self, cell: str) -> None:
        self.happened: list[str] = []
        self.now_s = 0.0
        self.acknowledged = 7
        own = Cell.parse(cell)
        self.trial = SimpleNamespace(
            cell=own,
            spec=SimpleNamespace(seed=5),
            clock_ms=lambda: self.now_s * 1000,
            transport=own[TRANSPORT],
        )
        network = SimpleNamespace(plug_nas=lambda is_in: self.happened.append(f"plug {is_in}"))
        self.machines = SimpleNamespace(lab=SimpleNamespace(network=network))
        self.nas = SimpleNamespace(must=self._must)
        self.last: Any = None

    def sleep(self, s: float) -> None:
        self.now_s += s

    def _must(self, *argv: str, deadline_s: float) -> None:
        assert deadline_s > 0
        end, start = self.trial.transport.traits.target_scripts
        target = {end: "end target", start: "start target"}
        self.happened.append(target.get(argv[-1], "lose" if "addr del" in argv[-1] else "regain"))

    def wait_until(self, reached: Any, *, deadline_s: float) -> bool:
        assert deadline_s == _DEADLINE_S
        assert not reached()
        self.acknowledged += 1
        self.happened.append("answered")
        return bool(reached())

    def fail(self) -> LinkFailure | None:
        rig = cast("Any", self)
        failure, self.last = fail_link(rig.trial, rig.machines, rig, rig.nas)
        return failure


@pytest.fixture
def no_wait(monkeypatch: pytest.MonkeyPatch) -> list[_Rig]:
    rigs: list[_Rig] = []
    monkeypatch.setattr("time.sleep", lambda s: rigs[0].sleep(s))
    return rigs


@pytest.mark.parametrize(
    ("transport", "expected"),
    [
        ("iscsi", ["plug False", "plug True", "answered"]),
        ("nvme_tcp", ["plug False", "plug True", "answered"]),
        ("nvme_tcp_two", ["lose", "regain", "answered"]),
        ("iscsi_two", ["lose", "regain", "answered"]),
    ],
)
def test_a_link_fails_and_is_mended_before_the_cut(
    transport: str, expected: list[str], no_wait: list[_Rig]
) -> None:
    rig = _Rig(f"{transport}-standard-noslog-ext4-linkfails-bothdie")
    no_wait.append(rig)
    failure = rig.fail()
    assert rig.happened == expected
    assert failure is not None
    assert failure.down_ms is not None
    assert 500 <= failure.down_ms <= 2500
    assert failure.up_ms == pytest.approx(failure.down_ms + 16_000)
    assert failure.has_other_path == transport.endswith("_two")
    assert rig.last is rig.nas


@pytest.mark.parametrize("transport", ["iscsi", "iscsi_two", "nvme_tcp", "nvme_tcp_two", "nfs4"])
def test_a_target_restarts_with_every_path_to_it(transport: str, no_wait: list[_Rig]) -> None:
    filesystem = "files" if transport == "nfs4" else "ext4"
    rig = _Rig(f"{transport}-standard-noslog-{filesystem}-targetrestarts-bothdie")
    no_wait.append(rig)
    failure = rig.fail()
    assert rig.happened == ["end target", "start target", "answered"]
    assert failure is not None
    assert failure.down_ms is not None
    assert failure.up_ms == pytest.approx(failure.down_ms + 4_000)
    assert not failure.has_other_path


@pytest.mark.parametrize("transport", ["nfs_image", "smb"])
def test_a_target_that_cannot_restart_is_refused(transport: str) -> None:
    with pytest.raises(ValueError, match="needs a target that restarts"):
        Cell.parse(
            f"{transport}-standard-noslog-{'ext4' if transport == 'nfs_image' else 'files'}"
            "-targetrestarts-bothdie"
        )


@pytest.mark.parametrize("transport", ["iscsi", "iscsi_two", "nvme_tcp", "nfs4"])
def test_a_standby_takes_over_while_no_client_reaches_either(
    transport: str, no_wait: list[_Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    filesystem = "files" if transport == "nfs4" else "ext4"
    rig = _Rig(f"{transport}-standard-noslog-{filesystem}-handover-bothdie")
    no_wait.append(rig)
    standby = object()

    def hand_over(trial: object, machines: object, nas: object) -> object:
        assert (trial, machines, nas) == (rig.trial, rig.machines, rig.nas)
        rig.happened.append("hand over")
        rig.sleep(3)
        return standby

    monkeypatch.setattr(outage, "hand_over", hand_over)
    failure = rig.fail()
    assert rig.happened == ["plug False", "hand over", "plug True", "answered"]
    assert rig.last is standby
    assert failure is not None
    assert failure.down_ms is not None
    assert failure.up_ms == pytest.approx(failure.down_ms + 3_000)
    assert not failure.has_other_path


def test_a_standby_is_refused_where_the_target_keeps_the_volume() -> None:
    with pytest.raises(ValueError, match="needs a target that lets go"):
        Cell.parse("smb-standard-noslog-files-handover-bothdie")


def test_a_link_that_stays_is_left_alone(no_wait: list[_Rig]) -> None:
    rig = _Rig("iscsi-standard-noslog-ext4-bothdie")
    no_wait.append(rig)
    assert rig.fail() is None
    assert (rig.happened, rig.now_s, rig.last) == ([], 0.0, rig.nas)


def test_a_cable_is_put_in_again_after_an_interruption(no_wait: list[_Rig]) -> None:
    rig = _Rig("iscsi-standard-noslog-ext4-linkfails-bothdie")
    no_wait.append(rig)

    def interrupted(s: float) -> None:
        if rig.happened:
            raise KeyboardInterrupt

    rig.sleep = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        rig.fail()
    assert rig.happened == ["plug False", "plug True"]
