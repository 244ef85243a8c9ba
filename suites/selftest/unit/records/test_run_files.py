"""A run's own files: what is written is read back, and what has the wrong type is not believed."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from torture.facts.evidence.cut_document import GONE, CutDocument, DiskAtCut
from torture.facts.evidence.documents import document_or_none
from torture.facts.evidence.manifest import MANIFEST_DUE, check_manifest
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import (
    RUN_FILE,
    Chosen,
    HostInfo,
    ImageInfo,
    RunDocument,
    RunLayout,
    agreed,
    read_run_document,
)
from torture.records.scoring import score as scoring

RUN = RunDocument(
    run="20261121-091024-1a2b",
    seed=7,
    options={"jobs": 2, "until": "upper<0.01", "cells": ["a", "b"]},
    begun="2026-11-21T09:10:24+0000",
    host=HostInfo(kernel="6.1", machine="x86_64", cores=None, memory_mib=7900, user="root"),
    accelerator=Chosen(kind="tcg", reason="there is no /dev/kvm"),
    network=Chosen(kind="bridge", reason=""),
    boot="warm",
    versions={"qemu": "7.2.22"},
    images={"nas": ImageInfo(key="k", packages={"zfs": "2.3"}), "client": None},
)
CUT_AS_WRITTEN = {
    "t_ms": 5100.25, "took_ms": 3.5,
    "plan": {"after_ms": 2000.5, "aim": "flush", "delay_ms": 0.0, "count": 2},
    "hit": False, "log_seq": 310, "log_ms": 5090.0, "marks": 0, "acknowledged": 12,
    "view": {"schema": 1, "cut": 310},
    "disks": {
        "data0": {"persistence": "volatile", "policy": "torn", "writes": 9, "in_flight": 0,
                  "unflushed": 3, "survived": 1, "torn": 0},
    },
}  # fmt: skip

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_the_description_of_a_run_is_read_back(tmp_path: Path) -> None:
    RUN.write(tmp_path)
    assert read_run_document(tmp_path) == RUN
    assert [path.name for path in tmp_path.iterdir()] == [RUN_FILE]
    assert RunLayout(folder=tmp_path).run_file.is_file()


def test_a_run_says_its_guests_processor_beside_the_accelerator(tmp_path: Path) -> None:
    replace(RUN, processor="maximum, without cx16").write(tmp_path)
    data = json.loads((tmp_path / RUN_FILE).read_text())
    assert list(data)[list(data).index("accelerator") + 1] == "processor"
    again = read_run_document(tmp_path)
    assert again is not None
    assert again.processor == "maximum, without cx16"


def test_a_run_json_has_the_keys_and_the_order_that_old_ones_have(tmp_path: Path) -> None:
    RUN.write(tmp_path)
    text = (tmp_path / RUN_FILE).read_text()
    data = json.loads(text)
    assert list(data) == [
        "run", "seed", "options", "begun", "host", "accelerator", "network", "boot", "versions",
        "images",
    ]  # fmt: skip
    assert data["network"] == {"kind": "bridge"}
    assert data["host"].keys() == {"kernel", "machine", "memory_mib", "user"}
    assert data["images"] == {"nas": {"key": "k", "packages": {"zfs": "2.3"}}, "client": None}
    assert text == json.dumps(data, indent=1) + "\n"


def test_fields_of_another_version_are_ignored() -> None:
    assert RunDocument.from_json(RUN.as_json() | {"weather": {"wind": 3}}) == RUN
    assert CutDocument.from_json({"weather": [1]}) == CutDocument()


@given(name=st.sampled_from(RunDocument.names()), value=anything)
def test_a_run_with_anything_in_a_field_has_its_types_or_is_none(name: str, value: Any) -> None:
    read = document_or_none(RunDocument, RUN.as_json() | {name: value})
    if read is None:
        return
    assert isinstance(read.run, str)
    assert read.seed is None or type(read.seed) is int
    assert isinstance(read.options, dict)
    assert read.jobs is None or read.jobs > 0
    assert all(isinstance(text, str) for text in (*read.versions.values(), *read.notes))
    assert all(image is None or isinstance(image.key, str) for image in read.images.values())


@pytest.mark.parametrize("jobs", [0, -1, True, "2", None, 2.0])
def test_jobs_that_are_no_number_are_not_believed(jobs: object) -> None:
    assert replace(RUN, options={"jobs": jobs}).jobs is None
    assert RUN.jobs == 2


def test_runs_agree_on_facts_that_all_of_them_state_and_on_no_others() -> None:
    other = replace(RUN, seed=8, options={"jobs": 2, "cells": []}, host=HostInfo(cores=4))
    same = agreed([RUN, other])
    assert (same.seed, same.host, same.options) == (None, HostInfo(), {"jobs": 2})
    assert (same.versions, same.boot) == (RUN.versions, "warm")
    assert agreed([RUN]) == RUN


def test_a_cut_is_written_in_the_old_format() -> None:
    document = CutDocument.from_json(CUT_AS_WRITTEN)
    assert json.dumps(document.as_json()) == json.dumps(CUT_AS_WRITTEN)
    assert (document.t_ms, document.aim, document.hit) == (5100.25, "flush", False)
    assert document.disks["data0"] == DiskAtCut(
        persistence="volatile",
        policy="torn",
        writes=9,
        in_flight=0,
        unflushed=3,
        survived=1,
        torn=0,
    )
    assert document.disks["data0"].policy != GONE


@given(name=st.sampled_from(CutDocument.names()), value=anything)
@example(name="second", value={"": float("inf")})
def test_a_cut_with_anything_in_a_field_has_its_types_or_is_none(name: str, value: Any) -> None:
    read = document_or_none(CutDocument, CUT_AS_WRITTEN | {name: value})
    if read is None:
        return
    assert read.t_ms is None or (isinstance(read.t_ms, float) and abs(read.t_ms) < float("inf"))
    assert read.acknowledged is None or read.acknowledged >= 0
    assert isinstance(read.aim, str)
    assert read.hit in (None, True, False)
    assert all(isinstance(disk.policy, str) for disk in read.disks.values())
    # what is kept as it was said was read strictly: `strict_json` lets no infinite number in
    json.dumps(read.as_json(), allow_nan=name in ("plan", "view", "second"))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "a\0b", "x" * 251])
def test_a_trials_name_that_leads_elsewhere_has_no_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no name of a folder"):
        RunLayout(folder=tmp_path).evidence_of(name)


def test_a_trials_folder_and_its_run_know_each_other(tmp_path: Path) -> None:
    layout = RunLayout(folder=tmp_path / "run")
    assert RunLayout.of_evidence(layout.evidence_of("trial")) == layout


# A disk of results that is full takes no verdict away, and gives no better one.


def no_room(*_: object, **__: object) -> None:
    """The error of every write to a full disk."""
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_loss_stays_one_without_room_for_its_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = SimpleNamespace(verdict=Verdict.CORRUPTED)
    monkeypatch.setattr(scoring, "write_manifest", no_room)
    monkeypatch.setattr(scoring, "score", lambda _folder, **_timings: lost)
    assert scoring.score_with_manifest(tmp_path, timings={}) is cast("Any", lost)


def test_a_manifest_that_was_due_and_not_written_is_a_complaint(tmp_path: Path) -> None:
    [complaint] = check_manifest(tmp_path, {MANIFEST_DUE: True}).complaints
    assert "cannot be read" in complaint
