"""The judge: evidence put together from recorded outputs, and the verdict that must follow."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from torture.matrix.verdicts import Verdict
from torture.record.evidence import Evidence, Step, ToolOutput
from torture.record.ledger import Begin, Cut, Done, Event, Hello, Ledger, OperationKind
from torture.verdict.judge import Judgement, judge

RECORDED = Path(__file__).resolve().parents[1] / "recorded"
FILES = 3
BLOCK_BYTES = 4096


def tool(step: Step, case: str, **changes: Any) -> ToolOutput:
    raw = json.loads((RECORDED / f"{case}.json").read_text())
    known = {field.name: raw[field.name] for field in fields(ToolOutput)}
    output = ToolOutput(**(known | {"argv": tuple(raw["argv"]), "step": step}))
    return replace(output, **changes)


def ledger() -> Ledger:
    """Three files made one after the other, then each overwritten; the cut comes at the end."""
    events: list[Event] = [Hello(t_ms=0.0, trial=7, mode="files")]
    for kind, first in ((OperationKind.CREATE, 1), (OperationKind.OVERWRITE, 4)):
        for file in range(FILES):
            t_ms, seq = 10.0 * len(events), first + file
            begin = Begin(
                t_ms=t_ms, seq=seq, writer=0, kind=kind, file=file, blocks=(0,), size_blocks=1
            )
            events += [begin, Done(t_ms=t_ms + 10, seq=seq)]
    events.append(Cut(t_ms=10.0 * len(events)))
    return Ledger(events=tuple(events))


def readback(*blocks: Any) -> str:
    files = [
        {"file": at, "name": f"f{at}", "listed": True, "size": BLOCK_BYTES, "blocks": [block]}
        for at, block in enumerate(blocks)
    ]
    document = {
        "mode": "files",
        "trial": 7,
        "looked": FILES,
        "files": files,
        "temporaries": [],
        "unexpected": [],
        "complete": True,
    }
    return json.dumps(document)


EVERYTHING = readback(4, 5, 6)
OLD = readback(1, 2, 3)
MIXED = readback(1, 5, 6)


def evidence(
    *tools: ToolOutput, filesystem: str = "btrfs", found: str | None = EVERYTHING, **changes: Any
) -> Evidence:
    """Good evidence, in which `tools` replace or add outputs by their step."""
    good = [
        tool(Step.POOL_IMPORT, "zpool/import-ok"),
        tool(Step.POOL_STATUS, "zpool/status-scrubbed"),
    ]
    if filesystem != "raw":
        checker = {"ext4": "e2fsck"}.get(filesystem, filesystem)
        good.append(tool(Step.FS_MOUNT, "mount/mounted"))
        good.append(tool(Step.FS_CHECK, f"{checker}/clean"))
    steps = {output.step for output in tools}
    made = Evidence(
        spec={"cell": f"iscsi-standard-noslog-{filesystem}-nasonly", "seed": 1},
        cut={},
        ledger=ledger(),
        tools=(*(output for output in good if output.step not in steps), *tools),
        readback=found,
        readback_after_repair=None,
    )
    return replace(made, **changes)


def without(made: Evidence, *steps: Step) -> Evidence:
    return replace(made, tools=tuple(output for output in made.tools if output.step not in steps))


REPAIR = (
    tool(Step.FS_CHECK, "btrfs/fs-tree-old-look"),
    tool(Step.FS_REPAIR, "btrfs/fs-tree-old-mend"),
    tool(Step.FS_MOUNT_AFTER_REPAIR, "mount/mounted"),
    tool(Step.FS_CHECK_AFTER_REPAIR, "btrfs/fs-tree-old-after"),
)
WONT_MOUNT = (
    tool(Step.FS_MOUNT, "mount/refused-bad-superblock"),
    tool(Step.FS_CHECK, "btrfs/chunk-tree-wiped-look"),
    tool(Step.FS_REPAIR, "btrfs/chunk-tree-wiped-mend"),
    tool(Step.FS_MOUNT_AFTER_REPAIR, "mount/refused-bad-superblock"),
)


def subs(judgement: Judgement) -> tuple[Verdict | None, ...]:
    return (judgement.pool, judgement.filesystem, judgement.data)


@pytest.mark.parametrize("filesystem", ["btrfs", "ext4", "xfs"])
def test_everything_there_and_clean_is_intact(filesystem: str) -> None:
    judgement = judge(evidence(filesystem=filesystem))
    assert judgement.verdict is Verdict.INTACT
    assert subs(judgement) == (Verdict.INTACT,) * 3
    assert (judgement.acknowledged, judgement.lost, judgement.rollback_ms) == (6, 0, None)
    assert (judgement.fsck, judgement.pool_summary) == ("clean", "ONLINE")


def test_a_journal_replay_is_allowed_and_told() -> None:
    judgement = judge(evidence(tool(Step.CHECK_DMESG, "kernel/log-replayed")))
    assert judgement.verdict is Verdict.INTACT
    assert judgement.fsck == "clean, journal replayed"


def test_a_raw_disk_has_no_filesystem_to_score() -> None:
    hello = Hello(t_ms=0.0, trial=7, mode="raw")
    raw = Ledger(events=(hello, *ledger().events[1:]))
    found = EVERYTHING.replace('"files", "trial"', '"raw", "trial"')
    judgement = judge(evidence(filesystem="raw", found=found, ledger=raw))
    assert judgement.verdict is Verdict.INTACT
    assert subs(judgement) == (Verdict.INTACT, None, Verdict.INTACT)
    stale = found.replace("[4]", "[1]")
    assert judge(evidence(filesystem="raw", found=stale, ledger=raw)).verdict is Verdict.CORRUPTED


def test_an_old_state_is_rolled_back_even_when_all_tools_are_content() -> None:
    judgement = judge(evidence(found=OLD))
    assert judgement.verdict is Verdict.ROLLED_BACK
    assert subs(judgement) == (Verdict.INTACT, Verdict.INTACT, Verdict.ROLLED_BACK)
    assert (judgement.lost, judgement.stale) == (3, 3)
    assert judgement.rollback_ms == 130.0 - 80.0


def test_mixed_states_are_corrupted_and_the_kernels_complaints_go_along() -> None:
    judgement = judge(evidence(tool(Step.CLIENT_DMESG, "kernel/csum-failed"), found=MIXED))
    assert judgement.verdict is Verdict.CORRUPTED
    assert subs(judgement) == (Verdict.INTACT, Verdict.INTACT, Verdict.CORRUPTED)
    assert (judgement.lost, judgement.rollback_ms) == (1, None)
    assert any("csum failed" in reason for reason in judgement.reasons)


def test_a_bad_copy_beside_a_good_one_is_worse_than_intact() -> None:
    judgement = judge(evidence(tool(Step.FS_CHECK, "btrfs/one-bad-copy")))
    assert judgement.verdict is Verdict.REPAIRED
    assert subs(judgement) == (Verdict.INTACT, Verdict.REPAIRED, Verdict.INTACT)


def test_a_repair_that_keeps_everything_is_repaired() -> None:
    judgement = judge(evidence(*REPAIR, found=EVERYTHING, readback_after_repair=EVERYTHING))
    assert judgement.verdict is Verdict.REPAIRED
    assert "parent transid verify failed" in judgement.fsck
    assert "repaired" in judgement.fsck


def test_a_repair_that_loses_promises_is_corruption_not_a_rollback() -> None:
    lost = evidence(*REPAIR, found=EVERYTHING, readback_after_repair=OLD)
    less_old = replace(lost, readback=readback(4, 5, 3))
    for before in (lost, replace(lost, readback=None), replace(lost, readback=MIXED), less_old):
        judgement = judge(before)
        assert judgement.verdict is Verdict.CORRUPTED
        assert judgement.data is Verdict.CORRUPTED
        assert "after a repair" in " ".join(judgement.reasons)
    as_old_as_before = judge(replace(lost, readback=OLD))
    assert as_old_as_before.verdict is Verdict.ROLLED_BACK


def test_a_filesystem_that_never_mounts_again_is_unrepairable_and_all_is_lost() -> None:
    judgement = judge(evidence(*WONT_MOUNT, found=None))
    assert judgement.verdict is Verdict.UNREPAIRABLE
    assert subs(judgement) == (Verdict.INTACT, Verdict.UNREPAIRABLE, None)
    assert (judgement.acknowledged, judgement.lost) == (6, 6)
    assert judgement.fsck.startswith("will not mount: wrong fs type")


def test_errors_left_after_the_repair_are_unrepairable() -> None:
    left = tool(Step.FS_CHECK_AFTER_REPAIR, "btrfs/wrong-link-count-look")
    judgement = judge(evidence(*REPAIR[:3], left, readback_after_repair=EVERYTHING))
    assert judgement.verdict is Verdict.UNREPAIRABLE


def test_an_import_that_gives_something_up_is_told_and_the_data_decides() -> None:
    tools = (
        tool(Step.POOL_IMPORT, "zpool/import-missing-log"),
        tool(Step.POOL_IMPORT_M, "zpool/import-ok"),
    )
    judgement = judge(evidence(*tools))
    assert judgement.verdict is Verdict.REPAIRED
    assert "needed -m" in judgement.pool_summary
    rolled = judge(evidence(*tools, found=OLD))
    assert (rolled.verdict, rolled.pool) == (Verdict.ROLLED_BACK, Verdict.REPAIRED)
    hopeless = tool(Step.POOL_IMPORT_M, "zpool/import-needs-rewind")
    rewound = tool(Step.POOL_IMPORT_REWIND, "zpool/import-rewound")
    judgement = judge(evidence(tools[0], hopeless, rewound, found=OLD))
    assert judgement.verdict is Verdict.ROLLED_BACK
    assert "needed -F" in judgement.pool_summary
    assert any("Discarded approximately 5 seconds" in reason for reason in judgement.reasons)


def test_a_pool_that_no_import_brings_back_is_lost() -> None:
    tools = (
        tool(Step.POOL_IMPORT, "zpool/import-needs-rewind"),
        tool(Step.POOL_IMPORT_M, "zpool/import-needs-rewind"),
        tool(Step.POOL_IMPORT_REWIND, "zpool/import-hopeless"),
    )
    lost = without(evidence(*tools, found=None), Step.POOL_STATUS, Step.FS_MOUNT, Step.FS_CHECK)
    judgement = judge(lost)
    assert judgement.verdict is Verdict.POOL_LOST
    assert subs(judgement) == (Verdict.POOL_LOST, None, None)
    assert (judgement.acknowledged, judgement.lost) == (6, 6)
    assert judge(without(lost, Step.POOL_IMPORT_REWIND)).verdict is Verdict.INCONCLUSIVE


def test_data_that_zfs_itself_cannot_give_back_is_corruption() -> None:
    status = tool(Step.POOL_STATUS, "zpool/status-scrubbed")
    errors = replace(status, stdout=status.stdout.replace('"error_count":"0"', '"error_count":"2"'))
    judgement = judge(evidence(errors))
    assert judgement.verdict is Verdict.CORRUPTED
    assert subs(judgement) == (Verdict.CORRUPTED, Verdict.INTACT, Verdict.INTACT)
    assert judgement.pool_summary == "ONLINE, 2 data errors"


def _cut_off(step: Step) -> Callable[[Evidence], Evidence]:
    return lambda made: replace(
        made,
        tools=tuple(
            replace(output, stdout=output.stdout[:40], stderr="") if output.step == step else output
            for output in made.tools
        ),
    )


def _late(step: Step) -> Callable[[Evidence], Evidence]:
    return lambda made: replace(
        made,
        tools=tuple(
            replace(output, exit_code=None) if output.step == step else output
            for output in made.tools
        ),
    )


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda e: without(e, Step.POOL_IMPORT), "pool-import was never tried"),
        (lambda e: without(e, Step.POOL_STATUS), "status was never asked for"),
        (lambda e: without(e, Step.FS_MOUNT), "fs-mount was never run"),
        (lambda e: without(e, Step.FS_CHECK), "fs-check was never run"),
        (_late(Step.POOL_IMPORT), "deadline"),
        (_late(Step.FS_MOUNT), "deadline"),
        (_late(Step.FS_CHECK), "deadline"),
        (_cut_off(Step.POOL_STATUS), "no status of one pool"),
        (_cut_off(Step.FS_CHECK), "closing line"),
        (lambda e: replace(e, readback=None), "no read-back"),
        (lambda e: replace(e, readback=EVERYTHING[:-9]), "cannot be read"),
        (lambda e: replace(e, readback=EVERYTHING.replace("true}", "false}")), "complete"),
        (lambda e: replace(e, readback=EVERYTHING.replace(": 7,", ": 8,")), "another trial"),
        (lambda e: replace(e, ledger=Ledger(events=())), "never began"),
        (lambda e: replace(e, ledger=replace(e.ledger, garbled=1)), "garbled"),
        (lambda e: replace(e, ledger=Ledger(events=e.ledger.events[:2])), "nothing was ackn"),
        (lambda e: replace(e, spec={"cell": "floppy"}), "floppy"),
        (lambda e: replace(e, spec={}), "None"),
    ],
)
@pytest.mark.parametrize("found", [EVERYTHING, MIXED])
def test_evidence_that_does_not_tell_is_inconclusive_and_says_why(
    spoil: Callable[[Evidence], Evidence], why: str, found: str
) -> None:
    made = evidence(found=found)
    judgement = judge(spoil(made))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert why in " ".join(judgement.reasons)


def test_a_check_that_looked_past_the_journal_proves_nothing() -> None:
    dirty = tool(Step.FS_CHECK, "e2fsck/dirty-journal-look")
    judgement = judge(evidence(dirty, filesystem="ext4"))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "journal" in judgement.reasons[0]


def test_what_was_scored_stays_when_the_whole_is_inconclusive() -> None:
    judgement = judge(without(evidence(found=MIXED), Step.FS_CHECK))
    assert subs(judgement) == (Verdict.INTACT, None, Verdict.CORRUPTED)
    assert judgement.lost == 1


def test_a_repair_that_was_never_tried_leaves_it_open() -> None:
    for missing in (Step.FS_REPAIR, Step.FS_MOUNT_AFTER_REPAIR, Step.FS_CHECK_AFTER_REPAIR):
        made = without(evidence(*REPAIR, readback_after_repair=EVERYTHING), missing)
        assert judge(made).verdict is Verdict.INCONCLUSIVE
    assert judge(evidence(*REPAIR)).verdict is Verdict.INCONCLUSIVE
