"""CrashState files: what is written is read, what makes no sense is refused, and folders can be moved."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.examples import examples
from torture.errors import HarnessError
from torture.facts.recording.crash_state import (
    CrashState,
    DiskState,
    InFlight,
    Policy,
    read_crash_state,
    write_crash_state,
)
from torture.files import CHECKOUT

CONTRACT = (CHECKOUT / "torture" / "machines" / "shelf" / "native" / "README.md").read_text()
EXAMPLE: dict[str, Any] = next(
    block
    for block in map(json.loads, re.findall(r"```json\n(.*?)```", CONTRACT, re.DOTALL))
    if "cut" in block
)

u64 = st.integers(0, 2**64 - 1)
bounds = {"held_ms": st.none() | u64, "held_bytes": st.none() | u64}
survivors = st.lists(
    u64 | st.tuples(u64, st.lists(u64, max_size=4).map(tuple)),
    max_size=5,
    unique_by=lambda survivor: survivor if isinstance(survivor, int) else survivor[0],
).map(tuple)
in_flight = {"in_flight": st.sampled_from(InFlight)}
lying = {"lying_ms": st.none() | u64}


def states(*policies: Policy, **of_disk: Any) -> st.SearchStrategy[DiskState]:
    return st.builds(DiskState, policy=st.sampled_from(policies), **of_disk)


disk_views = (
    states(Policy.ALL, **in_flight)
    | states(Policy.FLUSHED, **in_flight, **bounds)
    | states(Policy.SUBSET, Policy.OLDEST, Policy.BUT_FEW, **lying, **in_flight, **bounds)
    | states(Policy.TORN, Policy.PREFIX, **lying, **bounds)
    | states(Policy.LYING, lying_ms=u64, **in_flight, **bounds)
    | states(Policy.EXPLICIT, survivors=survivors)
)
views = st.builds(
    CrashState,
    recording=st.just(Path("life-1")),
    cut=u64,
    seed=u64,
    disks=st.dictionaries(st.text(min_size=1), disk_views, max_size=4),
)


def changed(**changes: Any) -> dict[str, Any]:
    return EXAMPLE | changes


def test_the_contracts_own_view_is_read() -> None:
    view = CrashState.from_json(EXAMPLE)
    assert view == CrashState(
        recording=Path("life-1"),
        cut=81233,
        seed=42,
        disks={
            "data0": DiskState(policy=Policy.TORN),
            "slog0": DiskState(policy=Policy.LYING, lying_ms=700, in_flight=InFlight.TORN),
            "slog1": DiskState(
                policy=Policy.EXPLICIT,
                survivors=(812, (813, (0, 2))),
            ),
        },
    )
    assert view.as_json() == EXAMPLE


def test_the_policies_are_the_contracts() -> None:
    table = CONTRACT.split("| policy | what survives |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == [
        policy.value for policy in Policy
    ]


@settings(deadline=None, max_examples=examples(50))
@given(view=views)
def test_a_view_comes_back(view: CrashState) -> None:
    assert CrashState.from_json(json.loads(json.dumps(view.as_json()))) == view


@pytest.mark.parametrize(
    ("data", "match"),
    [
        ([], "Expected `object`, got `array`"),
        ({}, "missing required field `recording`"),
        (changed(schema=2), r"Invalid enum value 2 - at `\$.schema`"),
        (changed(sead=1), "unknown field `sead`"),
        (changed(recording=1), "recording|str|Path"),
        (changed(cut=-1), "cut and seed has to be"),
        (changed(cut=True), r"got `bool` - at `\$.cut`"),
        (changed(cut=1.5), r"got `float` - at `\$.cut`"),
        (changed(seed=2**64), "cut and seed has to be"),
        (changed(seed="42"), r"got `str` - at `\$.seed`"),
        (changed(disks=[]), r"got `array` - at `\$.disks`"),
        (changed(disks={"data0": "torn"}), r"got `str` - at `\$.disks"),
        (changed(disks={"data0": {}}), "missing required field `policy`"),
        (changed(disks={"data0": {"policy": "most"}}), "Invalid enum value 'most'"),
        (changed(disks={"data0": {"policy": []}}), "policy"),
        (changed(disks={"data0": {"policy": "torn", "seed": 1}}), "unknown field `seed`"),
        (changed(disks={"data0": {"policy": "all", "lying_ms": 1}}), "`lying_ms` has no place"),
        (changed(disks={"data0": {"policy": "torn", "in_flight": "whole"}}), "has no place"),
        (changed(disks={"data0": {"policy": "all", "in_flight": "some"}}), "enum value 'some'"),
        (changed(disks={"data0": {"policy": "torn", "survivors": [1]}}), "`survivors` belongs"),
        (changed(disks={"data0": {"policy": "lying"}}), "lying needs `lying_ms`"),
        (changed(disks={"data0": {"policy": "lying", "lying_ms": -1}}), "lying_ms has to be"),
    ],
)
def test_nonsense_is_refused(data: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        CrashState.from_json(data)


@pytest.mark.parametrize(
    ("survivors", "match"),
    [
        (7, "Expected `array`"),
        ({"7": []}, "Expected `array`"),
        (["7"], "Expected `int | array`"),
        ([None], "Expected `int | array`"),
        ([[7]], "of length 2"),
        ([[7, 0]], "Expected `array`"),
        ([[7, [0], 1]], "of length 2"),
        ([[7, [-1]]], "survivor 7 has to be a number"),
        ([[7, [[0]]]], "Expected `int`"),
        ([7, [7, [0]]], "survives twice"),
    ],
)
def test_nonsensical_survivors_are_refused(survivors: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        DiskState.from_json({"policy": "explicit", "survivors": survivors})


@pytest.mark.parametrize(
    ("policy", "more", "match"),
    [
        (Policy.LYING, {}, "needs"),
        (Policy.ALL, {"lying_ms": 5}, "no place"),
        (Policy.FLUSHED, {"lying_ms": 5}, "no place"),
        (Policy.ALL, {"held_ms": 5}, "no place"),
        (Policy.EXPLICIT, {"held_bytes": 5}, "no place"),
        (Policy.SUBSET, {"held_bytes": -5}, "number"),
        (Policy.PREFIX, {"in_flight": InFlight.WHOLE}, "no place"),
        (Policy.EXPLICIT, {"lying_ms": 5}, "no place"),
        (Policy.TORN, {"in_flight": InFlight.WHOLE}, "no place"),
        (Policy.EXPLICIT, {"in_flight": InFlight.TORN}, "no place"),
        (Policy.ALL, {"survivors": (1,)}, "and only there"),
    ],
)
def test_no_nonsense_can_be_made(policy: Policy, more: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        DiskState(policy=policy, **more)


# --- files -----------------------------------------------------------------------------------------


def some_view(recording: Path) -> CrashState:
    return CrashState(
        recording=recording, cut=3, seed=2**64 - 1, disks={"a": DiskState(policy=Policy.TORN)}
    )


def test_a_view_file_names_its_recording_from_its_own_folder_on(tmp_path: Path) -> None:
    (tmp_path / "views").mkdir()
    path = tmp_path / "views" / "cut.view.json"
    view = some_view(tmp_path / "life-1")
    write_crash_state(path, view)
    assert json.loads(path.read_text())["recording"] == "../life-1"
    assert read_crash_state(path) == view
    assert list(path.parent.iterdir()) == [path]


def test_a_moved_folder_is_still_a_view_of_its_recording(tmp_path: Path) -> None:
    (tmp_path / "here" / "life-1").mkdir(parents=True)
    write_crash_state(tmp_path / "here" / "cut.view.json", some_view(tmp_path / "here" / "life-1"))
    shutil.move(tmp_path / "here", tmp_path / "there")
    assert read_crash_state(tmp_path / "there" / "cut.view.json") == some_view(
        tmp_path / "there/life-1"
    )


def test_the_way_to_the_recording_holds_behind_a_link(tmp_path: Path) -> None:
    """`..` leads out of the folder itself, not out of where its link is."""
    (tmp_path / "deep" / "views").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "views")
    write_crash_state(tmp_path / "link" / "cut.view.json", some_view(tmp_path / "life-1"))
    named = json.loads((tmp_path / "link" / "cut.view.json").read_text())["recording"]
    assert named == "../../life-1"
    assert read_crash_state(tmp_path / "link" / "cut.view.json") == some_view(tmp_path / "life-1")


def test_a_recording_found_through_a_link_is_named_without_it(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "deep")
    path = tmp_path / "deep" / "cut.view.json"
    write_crash_state(path, some_view(tmp_path / "link" / "life-1"))
    assert json.loads(path.read_text())["recording"] == "life-1"


def test_a_relative_recording_counts_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "views").mkdir()
    monkeypatch.chdir(tmp_path)
    write_crash_state(Path("views/cut.view.json"), some_view(Path("life-1")))
    assert read_crash_state(Path("views/cut.view.json")) == some_view(tmp_path / "life-1")


def test_a_view_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "cut.view.json"
    write_crash_state(path, some_view(tmp_path / "life-1"))
    (tmp_path / f".cut.view.json.partial-{os.getpid()}").mkdir()  # in the way
    with pytest.raises(HarnessError, match="cannot write the view"):
        write_crash_state(path, some_view(tmp_path / "life-2"))
    assert read_crash_state(path) == some_view(tmp_path / "life-1")


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff", b"[]"])
def test_a_file_that_is_no_view_is_the_machinerys_fault(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "cut.view.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(HarnessError, match="no readable view"):
        read_crash_state(path)
