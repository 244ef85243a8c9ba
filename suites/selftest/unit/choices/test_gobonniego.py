"""The output of gobonniego, recorded: whole, cut off, garbled; and its reading by the load."""

from __future__ import annotations

import json
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.good_evidence import evidence, tool
from torture.choices.workloads.gobonniego import Gobonniego, GobonniegoLoad
from torture.choices.workloads.protocol import Brought, Command, Place, Surroundings
from torture.errors import HarnessError
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import Completed, Evidence, Step
from torture.facts.evidence.ledger import Ledger
from torture.oracles.verdict.applications.gobonniego_output import (
    End,
    Ending,
    figures_of,
    parse_end,
    parse_runs,
)
from torture.oracles.verdict.guarantee import Terms, UnreadableError, Verdict
from torture.records.scoring.judge import judge

RECORDED = Path(__file__).resolve().parents[2] / "recorded" / "gobonniego"
WORKLOAD = Gobonniego()
WAYS = ("write_megabytes_per_second", "read_megabytes_per_second")
MISMATCH = "panic: what was read is not what was written: 8388608\n\ngoroutine 1 [running]:\n"


def recorded(name: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    stdout, stderr, code = (
        (RECORDED / f"{name}.{kind}").read_text() for kind in ("stdout", "stderr", "exit")
    )
    return int(code), stdout, stderr


@pytest.mark.parametrize(
    ("name", "runs", "first"),
    [("two-runs", 2, (583.182, 4961.528, 662314)), ("seconds", 6, (3117.769, 5441.654, 591317))],
)
def test_every_run_has_its_figures(name: str, runs: int, first: tuple[float, ...]) -> None:
    parsed = parse_runs(recorded(name)[1])
    assert len(parsed) == runs
    assert astuple(parsed[0]) == pytest.approx(first, rel=1e-6)


def test_the_figures_are_means() -> None:
    assert figures_of(parse_runs(recorded("two-runs")[1])) == {
        "gobonniego_runs": 2,
        "gobonniego_write_mb_per_s": pytest.approx((583.1820517 + 2897.287630) / 2, abs=1e-3),
        "gobonniego_read_mb_per_s": pytest.approx((4961.527809 + 6191.101880) / 2, abs=1e-3),
        "gobonniego_iops": pytest.approx((662314.2924 + 514315.5197) / 2, abs=0.1),
    }
    assert figures_of(()) == {}


def test_several_objects_are_the_runs_of_all() -> None:
    assert len(parse_runs(recorded("two-runs")[1] + recorded("seconds")[1])) == 8


@pytest.mark.parametrize("name", ["plain", "version"])
def test_garbled_runs_are_refused(name: str) -> None:
    with pytest.raises(UnreadableError, match="garbled"):
        parse_runs(recorded(name)[1])


@given(st.data())
def test_an_output_that_is_cut_off_is_refused(data: st.DataObject) -> None:
    text = recorded("seconds")[1].rstrip("\n")
    with pytest.raises(UnreadableError):
        parse_runs(text[: data.draw(st.integers(1, len(text) - 1))])


@pytest.mark.parametrize(
    "change",
    [
        {"results": []},
        {"results": None},
        {"results": [{}]},
        {"results": [7]},
        {"version": None},
        *(
            {"results": [{**dict.fromkeys(WAYS, 1.0), "iops": iops}]}
            for iops in (None, "7", True, -1, float("nan"), float("inf"))
        ),
    ],
)  # fmt: skip
def test_an_output_that_is_garbled_is_refused(change: dict[str, Any]) -> None:
    text = json.dumps(json.loads(recorded("two-runs")[1]) | change)
    with pytest.raises(UnreadableError):
        parse_runs(text)


@pytest.mark.parametrize(
    ("name", "ending", "words"),
    [
        ("two-runs", Ending.DONE, ""),
        ("killed", Ending.KILLED, ""),
        ("full-disk", Ending.STORAGE_FAILED, "no space left on device"),
        ("read-only", Ending.STORAGE_FAILED, "read-only file system"),
    ],
)
def test_the_end_of_the_program_is_reported(name: str, ending: Ending, words: str) -> None:
    code, _, stderr = recorded(name)
    end = parse_end(code, stderr)
    assert end.ending is ending
    assert end.words.endswith(words)


def test_an_error_that_it_found_itself_is_a_mismatch() -> None:
    end = parse_end(2, MISMATCH)
    words = "what was read is not what was written: 8388608"
    assert end == End(ending=Ending.MISMATCHED, words=words)


@pytest.mark.parametrize(
    ("code", "stderr"),
    [
        (1, ""),
        (2, recorded("full-disk")[2].replace("panic: ", "")),
        (2, "panic: runtime error: index out of range [3]"),
        (2, "fatal error: runtime: out of memory"),
        (127, "sh: gobonniego: not found"),
        (139, ""),
    ],
)
def test_an_end_that_is_not_known_is_refused(code: int, stderr: str) -> None:
    with pytest.raises(UnreadableError, match=f"ended with {code}, and why is not known"):
        parse_end(code, stderr)


def evidence_with(*outputs: tuple[int | None, str, str], read: str = "complete\n") -> Evidence:
    tools = tuple(
        tool(Step.CLIENT_LOAD, "mount/mounted", exit_code=code, stdout=stdout, stderr=stderr)
        for code, stdout, stderr in outputs
    )
    return Evidence(
        spec={},
        cut=CutDocument(),
        ledger=Ledger(events=()),
        tools=tools,
        readbacks={WORKLOAD.readback: read},
    )


def test_figures_of_all_its_ends_are_in_the_findings() -> None:
    evidence = evidence_with(recorded("two-runs"), recorded("seconds"), recorded("killed"))
    findings = WORKLOAD.judge(evidence, Terms(), after_repair=False)
    assert (findings.verdict, findings.acknowledged, findings.reasons) == (Verdict.INTACT, 0, ())
    assert findings.figures["gobonniego_runs"] == 8


@pytest.mark.parametrize(
    ("output", "verdict", "reason"),
    [
        ((2, "", MISMATCH), Verdict.CORRUPTED, "other data than it had written"),
        (recorded("read-only"), Verdict.INTACT, "read-only file system"),
        ((0, recorded("seconds")[1][:200], ""), Verdict.INTACT, "garbled"),
    ],
)
def test_its_output_is_evidence(
    output: tuple[int, str, str], verdict: Verdict, reason: str
) -> None:
    findings = WORKLOAD.judge(evidence_with(output), Terms(), after_repair=False)
    assert findings.verdict is verdict
    assert reason in findings.reasons[0]


def test_its_figures_are_in_the_judgement_beside_the_ledgers_findings() -> None:
    cell = "iscsi-standard-noslog-ext4-gobonniego-nasonly"
    said = evidence_with(recorded("two-runs"))
    good = evidence(*said.tools, filesystem="ext4")
    judgement = judge(
        replace(
            good,
            spec=good.spec | {"cell": cell},
            readbacks={**good.readbacks, **said.readbacks},
        )
    )
    assert (judgement.verdict, judgement.acknowledged) == (Verdict.INTACT, 6)
    assert judgement.findings.figures["gobonniego_runs"] == 2


def test_a_file_of_its_that_cannot_be_read_is_corruption() -> None:
    read = "read ./bonnie.0\nfailed cat: ./bonnie.1: Input/output error\ncomplete\n"
    findings = WORKLOAD.judge(evidence_with(read=read), Terms(), after_repair=False)
    assert findings.verdict is Verdict.CORRUPTED
    assert "bonnie.1: Input/output error" in findings.reasons[0]


@pytest.mark.parametrize("read", ["", "read ./bonnie.0\n"])
def test_a_read_back_that_is_cut_off_says_nothing(read: str) -> None:
    with pytest.raises(UnreadableError, match="no complete read-back"):
        WORKLOAD.judge(evidence_with(read=read), Terms(), after_repair=False)


class FakeGuest:
    """A guest in which programs end as given: the first run, and the repeated one."""

    def __init__(self, first: tuple[int, str, str], again: tuple[int, str, str] | None) -> None:
        self.first, self.again = first, again
        self.brought: dict[str, bytes] = {}
        self.started: list[Command] = []

    def put_program(self, path: str, content: bytes) -> None:
        self.brought[path] = content

    def start(self, argv: Command) -> int:
        self.started.append(argv)
        return len(self.started)

    def _completed(self, argv: Command, said: tuple[int, str, str]) -> Completed:
        code, stdout, stderr = said
        return Completed(
            vm="client", argv=argv, exit_code=code, stdout=stdout, stderr=stderr, duration_ms=1
        )

    def poll(self, pid: int, argv: Command) -> Completed | None:
        return None if self.again is None else self._completed(argv, self.again)

    def finish(self, pid: int, argv: Command, *, deadline_s: float) -> Completed:
        said = self.first if argv[0] == "/run/gobonniego" else (self.again or recorded("seconds"))
        return self._completed(argv, (0, "", "") if argv[0] == "touch" else said)


JOB = {"directory": "/mnt/bench", "program": "/own/gobonniego", "sha256": "0"}


def started(guest: FakeGuest, kept: list[Completed]) -> GobonniegoLoad:
    surroundings = Surroundings(
        guest=guest,
        open_ledger=lambda: pytest.fail("it keeps no ledger"),
        keep=kept.append,
        content_of=lambda brought: brought.path.encode(),
    )
    return WORKLOAD.start(JOB, surroundings)


def test_it_runs_once_before_all_else_and_then_again_until_it_is_stopped() -> None:
    guest, kept = FakeGuest(recorded("two-runs"), None), list[Completed]()
    load = started(guest, kept)
    assert guest.brought == {"/run/gobonniego": b"/own/gobonniego"}
    assert [one.stdout for one in kept] == [recorded("two-runs")[1]]
    load.raise_if_over()
    load.finish(deadline_s=1)
    assert guest.started[-1] == ("touch", "/run/gobonniego.stop")
    assert [one.stdout for one in kept][1:] == [recorded("seconds")[1]]
    load.finish(deadline_s=1)
    assert len(kept) == 2


@pytest.mark.parametrize("first", [recorded("full-disk"), recorded("plain"), (126, "", "no ELF")])
def test_one_that_does_not_run_in_the_client_is_a_fault_of_the_machinery(
    first: tuple[int, str, str],
) -> None:
    with pytest.raises(HarnessError, match="/own/gobonniego"):
        started(FakeGuest(first, None), [])


def test_one_that_ends_before_the_cut_is_a_fault_of_the_machinery() -> None:
    load = started(FakeGuest(recorded("two-runs"), recorded("full-disk")), [])
    with pytest.raises(HarnessError, match=r"too early: 2: (?s:.*)no space left on device"):
        load.raise_if_over()


def test_one_that_finds_a_mismatch_before_the_cut_is_evidence() -> None:
    kept = list[Completed]()
    load = started(FakeGuest(recorded("two-runs"), (2, "", MISMATCH)), kept)
    load.raise_if_over()
    load.raise_if_over()
    load.finish(deadline_s=1)
    assert [one.stderr for one in kept][1:] == [MISMATCH]


def test_it_acknowledges_nothing_and_the_trial_does_not_wait_for_it() -> None:
    load = started(FakeGuest(recorded("two-runs"), None), [])
    assert (load.begun, load.acknowledged, load.is_over) == (0, 0, True)
    assert load.wait_until(lambda: True, deadline_s=0)
    assert not load.wait_until(lambda: False, deadline_s=0)


def test_without_one_it_names_the_next_command() -> None:
    with pytest.raises(HarnessError, match="needs a file from you") as refused:
        WORKLOAD.job(seed=1, place=Place(directory="/mnt"))
    assert refused.value.hint == "say --gobonniego PATH, or have it on PATH"
    own = Brought(load="gobonniego", path="/own/gobonniego", sha256="0")
    place = Place(directory="/mnt", brought=(own, replace(own, load="another")))
    assert WORKLOAD.job(seed=1, place=place) == JOB
