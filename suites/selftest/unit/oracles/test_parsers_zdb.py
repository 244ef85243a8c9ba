"""The answer of `zdb -b` for a pool, on recorded outputs: whole, cut off, garbled; its verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from suites.selftest.unit.good_evidence import evidence, tool
from torture.facts.evidence.cut_document import GONE, DiskAtCut
from torture.facts.evidence.folder import Step, ToolOutput
from torture.oracles.verdict.guarantee import UnreadableError, Verdict
from torture.oracles.verdict.pool_tools.zpool import BlockCheck, parse_zdb
from torture.oracles.verdict.pool_verdict import judge_pool
from torture.records.scoring.judge import judge

SOUND = tool(Step.POOL_BLOCKS, "zdb/sound")
_VOUCHED = "\tNo leaks (block sum matches space maps exactly)\n"


def _said(*lines: str, exit_code: int, vouches: bool = False) -> ToolOutput:
    """The sound one with other lines in front of, or instead of, its word that nothing is leaked."""
    said = "".join(f"{line}\n" for line in lines) + (_VOUCHED if vouches else "")
    return replace(SOUND, stdout=SOUND.stdout.replace(_VOUCHED, said), exit_code=exit_code)


LEAKED = _said(
    "leaked space: vdev 0, offset 0x1a00, size 512",
    "block traversal size 8839168 != alloc 8839680 (leaked 512)",
    exit_code=0,
)
CLAIMED_TWICE = _said(
    "block claim error 2: DVA[0]=<0:4000:200> [L0 DMU dnode] fletcher4 uncompressed LE",
    "",
    "Error counts:",
    "",
    "\terrno  count",
    "\t    2  1",
    "block traversal size 8840192 != alloc 8839680 (leaked -512)",
    exit_code=3,
)
"""As OpenZFS 2.3.9 `cmd/zdb/zdb.c` prints them; no pool here has shown either."""
UNREADABLE_BLOCK = tool(Step.POOL_BLOCKS, "zdb/blocks-spoiled")


@pytest.mark.parametrize("case", ["sound", "sound-short-of-a-leg", "sound-2.1"])
def test_a_sound_pool_is_understood(case: str) -> None:
    assert parse_zdb(tool(Step.POOL_BLOCKS, f"zdb/{case}")) == BlockCheck()


@pytest.mark.parametrize(
    ("output", "first"),
    [
        (LEAKED, "leaked space: vdev 0"),
        (CLAIMED_TWICE, "block claim error 2"),
        (UNREADABLE_BLOCK, "zdb_blkptr_cb: Got error 52"),
        (_said("block traversal size 5 != alloc 7 (leaked 2)", exit_code=0), "block traversal"),
        (_said("BRT leak: vdev 0, offset 0x0, refcount 1", exit_code=2, vouches=True), "BRT leak"),
    ],
)
def test_leaked_doubled_and_unreadable_blocks_are_a_problem(output: ToolOutput, first: str) -> None:
    found = parse_zdb(output)
    assert not found.is_sound
    assert not found.gave_up
    assert found.problems[0].startswith(first)


@pytest.mark.parametrize(
    "output",
    [
        replace(SOUND, exit_code=134, stdout="", stderr="ASSERT at zdb.c:1:f()\nverify failed\n"),
        replace(SOUND, exit_code=139, stdout="", stderr=""),
        replace(
            SOUND, exit_code=1, stdout="", stderr="zdb: can't open 'tank': Input/output error\n"
        ),
        replace(SOUND, exit_code=1, stdout="", stderr="zdb: can't open 'tank': Invalid exchange\n"),
    ],
)
def test_a_pool_over_which_zdb_gives_up_is_not_sound(output: ToolOutput) -> None:
    found = parse_zdb(output)
    assert found.gave_up
    assert not found.is_sound


@pytest.mark.parametrize("gone", [False, True])
def test_it_counts_nothing_in_use_on_a_device_that_the_trial_took_away(gone: bool) -> None:
    """A trial of ours without its log device; the same words of a device that is there are a finding."""
    output = tool(Step.POOL_BLOCKS, "zdb/gives-up-without-log")
    assert parse_zdb(output).counts_what_is_missing
    assert not parse_zdb(tool(Step.POOL_BLOCKS, "zdb/cannot-open")).counts_what_is_missing
    disk = DiskAtCut(policy=GONE if gone else "flushed")

    def verdict(said: ToolOutput) -> Verdict | None:
        seen = evidence(said)
        return judge_pool(
            replace(seen, cut=structs.replace(seen.cut, disks={"slog0": disk}))
        ).verdict

    assert verdict(output) is (Verdict.INTACT if gone else Verdict.CORRUPTED)
    assert verdict(LEAKED) is Verdict.CORRUPTED


@pytest.mark.parametrize(
    "output",
    [
        replace(SOUND, exit_code=None),
        replace(SOUND, exit_code=137),
        replace(SOUND, exit_code=2),
        replace(SOUND, exit_code=3),
        replace(SOUND, exit_code=127, stdout="", stderr="sh: zdb: not found\n"),
        replace(SOUND, exit_code=1, stdout="", stderr="zdb: can't open 'tank': No such file\n"),
        replace(SOUND, stdout=""),
        replace(SOUND, stdout=SOUND.stdout[: SOUND.stdout.index("\tbp count")]),
        tool(Step.POOL_BLOCKS, "zdb/no-such-pool"),
        replace(SOUND, stdout=SOUND.stdout.replace(" and verify nothing leaked", "")),
        _said(exit_code=0),
    ],
)
def test_output_that_proves_nothing_is_unreadable(output: ToolOutput) -> None:
    with pytest.raises(UnreadableError):
        parse_zdb(output)


@pytest.mark.parametrize("output", [SOUND, LEAKED, CLAIMED_TWICE, UNREADABLE_BLOCK])
def test_a_damaged_output_never_turns_its_meaning(output: ToolOutput) -> None:
    whole = parse_zdb(output).is_sound
    for end in range(len(output.stdout)):
        try:
            said = parse_zdb(replace(output, stdout=output.stdout[:end])).is_sound
        except UnreadableError:
            continue
        assert said == whole


@given(at=st.integers(0, len(LEAKED.stdout) - 1), junk=st.text(min_size=1, max_size=8))
def test_a_garbled_leak_is_never_sound(at: int, junk: str) -> None:
    text = LEAKED.stdout[:at] + "\x00" + junk + LEAKED.stdout[at + 1 + len(junk) :]
    try:
        found = parse_zdb(replace(LEAKED, stdout=text))
    except UnreadableError:
        return
    assert not found.is_sound


def test_a_leak_breaks_the_pool_even_after_a_clean_scrub() -> None:
    finding = judge_pool(evidence(LEAKED))
    assert finding.verdict is Verdict.CORRUPTED
    assert finding.reasons[0] == "pool-blocks: leaked space: vdev 0, offset 0x1a00, size 512"
    assert judge_pool(evidence(SOUND)).verdict is Verdict.INTACT
    assert judge(evidence(LEAKED)).verdict is Verdict.CORRUPTED


def test_a_pool_that_was_never_idle_was_not_checked() -> None:
    stirred = replace(LEAKED, step=Step.POOL_BLOCKS_ASTIR)
    (why,) = judge_pool(evidence(stirred)).unknown
    assert "never idle" in why
    assert judge_pool(evidence(stirred, SOUND)).verdict is Verdict.INTACT


def test_blocks_that_could_not_be_counted_make_a_trial_inconclusive() -> None:
    garbled = replace(SOUND, stdout=SOUND.stdout[:100])
    judgement = judge(evidence(garbled))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "pool-blocks" in judgement.reasons[0]
