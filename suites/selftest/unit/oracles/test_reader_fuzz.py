"""Every reader of tools and read-backs on spoiled texts: it reads them, or says that it cannot.

A reader that raises anything else ends a rejudge, and a report, at one line of one trial.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.administered import CASES, administration_of, outputs_of
from suites.selftest.unit.good_evidence import RECORDED, output_of
from suites.selftest.unit.status_as_text import in_text
from torture.choices.administration.protocol import Printed
from torture.choices.filesystems.btrfs import parse_btrfs_check
from torture.choices.filesystems.ext4 import parse_e2fsck
from torture.choices.filesystems.xfs import parse_xfs_repair
from torture.choices.filesystems.zfs import parse_zpool_check
from torture.choices.workloads._files_beside import parse_gone
from torture.facts.evidence.folder import Evidence, ToolOutput, load_evidence
from torture.oracles.verdict.applications.gobonniego_output import parse_end, parse_runs
from torture.oracles.verdict.applications.transactions import parse_found
from torture.oracles.verdict.blocks.history import parse_readback
from torture.oracles.verdict.boot_verdict import fsck_at_boot, parse_boot
from torture.oracles.verdict.guarantee import UnreadableError, Verdict
from torture.oracles.verdict.mount import parse_mount, read_kernel_log, read_nas_log
from torture.oracles.verdict.pool_tools.zpool import (
    parse_import,
    parse_status,
    parse_zdb,
    refuse_unfinished_scrub,
)
from torture.oracles.verdict.trees.tree_syncs import parse_trees
from torture.records.scoring.judge import judge

_CODES = (0, 1, 2, 3, 4, 8, 32, 134, 137, None)
_JUNK = (
    "", ":", ": ", "\n", "\t", "'", '"', "{}", "[]", "null", "0", "-1", "1e999", "1e999K", "NaN",
    "9" * 400, "\ud800", '"\\ud800"', "\x00", "\x1b[1m", "errno:5", "config:\n",
)  # fmt: skip
"""Each broke a reader once, or might."""
_PACKED = sorted(RECORDED.joinpath("evidence").glob("*.zip"))
_SPOILT = st.tuples(st.integers(0, 10**6), st.integers(0, 60), st.sampled_from(_JUNK))

Spoilt = list[tuple[int, int, str]]
Reader = Callable[[ToolOutput], object]


def spoiled(text: str, changes: Spoilt) -> str:
    """The text with some places replaced."""
    for place, length, junk in changes:
        begin = place % (len(text) + 1)
        text = text[:begin] + junk + text[begin + length :]
    return text


def recorded(folder: str) -> Iterator[ToolOutput]:
    """A folder's recorded outputs."""
    for path in sorted((RECORDED / folder).glob("*.json")):
        yield output_of(json.loads(path.read_text()))


OUTPUTS = {name: list(recorded(name)) for name in
           ("boot", "btrfs", "e2fsck", "kernel", "mount", "xfs", "zdb", "zfs", "zpool")}  # fmt: skip


def _status(output: ToolOutput) -> object:
    return parse_status(replace(output, argv=("zpool", "status", "-p")))


READERS: tuple[tuple[Reader, str], ...] = (
    (parse_boot, "boot"),
    (lambda output: fsck_at_boot(output.stdout), "boot"),
    (parse_btrfs_check, "btrfs"),
    (parse_e2fsck, "e2fsck"),
    (parse_xfs_repair, "xfs"),
    (parse_zpool_check, "zfs"),
    (parse_mount, "mount"),
    (read_kernel_log, "kernel"),
    (lambda output: read_nas_log(output.stdout.splitlines()), "kernel"),
    (parse_import, "zpool"),
    (refuse_unfinished_scrub, "zpool"),
    (parse_status, "zpool"),
    (_status, "zpool"),
    (parse_zdb, "zdb"),
    (lambda output: parse_runs(output.stdout), "zpool"),
    (lambda output: parse_end(output.exit_code, output.stdout), "zpool"),
)


@pytest.mark.parametrize("which", range(len(READERS)))
@given(
    data=st.data(), code=st.sampled_from(_CODES), out=st.lists(_SPOILT, max_size=3),
    err=st.lists(_SPOILT, max_size=3),
)  # fmt: skip
def test_a_spoiled_output_is_read_or_refused(
    which: int, data: st.DataObject, code: int | None, out: Spoilt, err: Spoilt
) -> None:
    reader, folder = READERS[which]
    output = data.draw(st.sampled_from(OUTPUTS[folder]))
    stdout, stderr = spoiled(output.stdout, out), spoiled(output.stderr, err)
    _read_or_refuse(reader, replace(output, exit_code=code, stdout=stdout, stderr=stderr))


def _read_or_refuse(reader: Callable[[Any], object], text: Any) -> None:
    try:
        found = reader(text)
    except UnreadableError:
        return
    repr(found)


@pytest.mark.parametrize(
    ("reader", "code", "text"),
    [
        (parse_mount, 32, "mount: wrong fs type, bad option, bad superblock\n"),
        (
            _status,
            0,
            "  pool: t\n state: ONLINE\nconfig:\n\n\tNAME STATE READ WRITE CKSUM\n\n"
            "errors: No known data errors\n",
        ),
        (lambda output: parse_runs(output.stdout), 0, '{"a": "\ud800"}'),
        (lambda output: parse_gone(output.stdout, "it"), 0, '{"missing": [1e999]}'),
    ],
)
def test_texts_that_broke_a_reader(reader: Reader, code: int, text: str) -> None:
    _read_or_refuse(reader, replace(OUTPUTS["zpool"][0], exit_code=code, stdout=text, stderr=text))


@given(
    case=st.sampled_from(CASES), as_text=st.booleans(), which=st.integers(0, 3),
    changes=st.lists(_SPOILT, min_size=1, max_size=3),
)  # fmt: skip
def test_a_spoiled_answer_about_an_administration_is_read_or_refused(
    case: str, as_text: bool, which: int, changes: Spoilt
) -> None:
    answers = [in_text(one) if as_text else one for one in outputs_of(case)]
    place = which % len(answers)
    answers[place] = replace(answers[place], stdout=spoiled(answers[place].stdout, changes))
    _read_or_refuse(administration_of(case).read, Printed(answers))


@pytest.fixture(scope="module")
def evidences(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Evidence]:
    """The recorded trials, by the names of their archives."""
    found = {}
    for path in _PACKED:
        folder: Path = tmp_path_factory.mktemp("evidence")
        with zipfile.ZipFile(path) as packed:
            packed.extractall(folder)
        found[path.name] = load_evidence(next(iter(folder.rglob("spec.json"))).parent)
    return found


@pytest.mark.parametrize(
    "parse", [parse_readback, parse_found, parse_trees, lambda text: parse_gone(text, "it")]
)
@given(data=st.data(), changes=st.lists(_SPOILT, max_size=3))
def test_a_spoiled_read_back_is_read_or_refused(
    evidences: dict[str, Evidence],
    parse: Callable[[str], object],
    data: st.DataObject,
    changes: Spoilt,
) -> None:
    texts = [text for one in evidences.values() for text in one.readbacks.values()]
    _read_or_refuse(parse, spoiled(data.draw(st.sampled_from(texts)), changes))


@given(
    data=st.data(), changes=st.lists(_SPOILT, min_size=1, max_size=3), code=st.sampled_from(_CODES)
)
def test_a_spoiled_trial_is_judged(
    evidences: dict[str, Evidence], data: st.DataObject, changes: Spoilt, code: int | None
) -> None:
    made = evidences[data.draw(st.sampled_from(sorted(evidences)))]
    place = data.draw(st.integers(0, len(made.tools) - 1)) if made.tools else None
    if place is not None:
        output = made.tools[place]
        spoilt = replace(output, exit_code=code, stdout=spoiled(output.stdout, changes))
        made = replace(made, tools=(*made.tools[:place], spoilt, *made.tools[place + 1 :]))
    for name, text in made.readbacks.items():
        made = replace(made, readbacks={**made.readbacks, name: spoiled(text, changes)})
    assert judge(made).verdict in Verdict


def test_half_a_surrogate_pair_in_a_read_back_comes_into_no_record(
    evidences: dict[str, Evidence],
) -> None:
    made = evidences["intact.nfs3-standard-noslog-files-nasonly.0000-b163df0e17a5d28f.zip"]
    ((name, text),) = made.readbacks.items()
    for half in ("\ud800", "\\ud800"):
        odd = text.replace('"name":"f00000"', f'"errno":5,"name":"{half}"')
        assert odd != text
        judgement = judge(replace(made, readbacks={name: odd}))
        assert judgement.verdict is Verdict.CORRUPTED
        assert "\n".join(judgement.reasons).encode()
