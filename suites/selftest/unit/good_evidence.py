"""A trial's evidence put together from recorded outputs, for tests to spoil."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import (
    READBACK,
    READBACK_AFTER_REPAIR,
    Evidence,
    Step,
    ToolOutput,
)
from torture.facts.evidence.ledger import Begin, Cut, Done, Event, Hello, Ledger, OperationKind

RECORDED = Path(__file__).resolve().parents[1] / "recorded"
FILES = 3
BLOCK_BYTES = 4096


def output_of(raw: dict[str, Any]) -> ToolOutput:
    """An output as it was recorded, without the notes beside it."""
    known = {field.name: raw[field.name] for field in fields(ToolOutput)}
    return ToolOutput(**(known | {"argv": tuple(raw["argv"])}))


def recording(case: str) -> ToolOutput:
    return output_of(json.loads((RECORDED / f"{case}.json").read_text()))


def tool(step: Step, case: str, **changes: Any) -> ToolOutput:
    return replace(recording(case), step=step, **changes)


def failed_disk(*, after_unmount: bool = False) -> ToolOutput:
    """The checker's kernel log, in which its disk fails a read: before the last unmount, or after."""
    line = "[    9.6] I/O error, dev vdb, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio 0\n"
    log = tool(Step.CHECK_DMESG, "kernel/log-replayed")
    *before, unmount = log.stdout.splitlines(keepends=True)
    assert "last unmount" in unmount
    lines = (*before, unmount, line) if after_unmount else (*before, line, unmount)
    return replace(log, stdout="".join(lines))


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


def umount(step: Step, exit_code: int | None = 0) -> ToolOutput:
    """An unmounting: without a word when it worked."""
    return tool(step, "mount/mounted", name="umount", argv=("umount", "/mnt"), exit_code=exit_code)


STATUS = tool(Step.POOL_STATUS, "zpool/status-scrubbed")
SCRUB = tool(Step.POOL_SCRUB, "zpool/import-ok", argv=("zpool", "scrub", "-w", "tank"))


def evidence(
    *tools: ToolOutput, filesystem: str = "btrfs", found: str | None = EVERYTHING, **changes: Any
) -> Evidence:
    """Good evidence, in which `tools` replace outputs of their step, or come at the end."""
    good = [tool(Step.POOL_IMPORT, "zpool/import-ok"), STATUS]
    if filesystem != "raw":
        checker = {"ext4": "e2fsck"}.get(filesystem, filesystem)
        good.append(tool(Step.FS_MOUNT, "mount/mounted"))
        good.append(umount(Step.FS_UMOUNT))
        good.append(tool(Step.FS_CHECK, f"{checker}/clean"))
    good += [SCRUB, STATUS]
    replaced = {output.step: output for output in tools}
    steps = {output.step for output in good}
    made = Evidence(
        spec={"cell": f"iscsi-standard-noslog-{filesystem}-nasonly", "seed": 1},
        cut=CutDocument(),
        ledger=ledger(),
        tools=(
            *(replaced.get(output.step, output) for output in good),
            *(output for output in tools if output.step not in steps),
        ),
        readbacks={} if found is None else {READBACK: found},
    )
    return replace(made, **changes)


def read(made: Evidence, found: str | None, *, after_repair: bool = False) -> Evidence:
    """The same evidence with another read-back; None: it was never read."""
    name = READBACK_AFTER_REPAIR if after_repair else READBACK
    others = {other: text for other, text in made.readbacks.items() if other != name}
    return replace(made, readbacks=others | ({} if found is None else {name: found}))


def without(made: Evidence, *steps: Step) -> Evidence:
    return replace(made, tools=tuple(output for output in made.tools if output.step not in steps))


REPAIR = (
    tool(Step.FS_CHECK, "btrfs/fs-tree-old-look"),
    tool(Step.FS_REPAIR, "btrfs/fs-tree-old-mend"),
    tool(Step.FS_MOUNT_AFTER_REPAIR, "mount/mounted"),
    umount(Step.FS_UMOUNT_AFTER_REPAIR),
    tool(Step.FS_CHECK_AFTER_REPAIR, "btrfs/fs-tree-old-after"),
)
WONT_MOUNT = (
    tool(Step.FS_MOUNT, "mount/refused-bad-superblock"),
    tool(Step.FS_CHECK, "btrfs/chunk-tree-wiped-look"),
    tool(Step.FS_REPAIR, "btrfs/chunk-tree-wiped-mend"),
    tool(Step.FS_MOUNT_AFTER_REPAIR, "mount/refused-bad-superblock"),
)
