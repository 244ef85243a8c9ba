"""A trial's evidence put together from recorded outputs, for tests to spoil."""

from __future__ import annotations

import json
from collections.abc import Sequence
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


def begun(
    t_ms: float, seq: int, kind: OperationKind, *, blocks: Sequence[int] = (0,), **more: Any
) -> Begin:
    """The begin of an operation: of the first writer, on the first file, and as large as its blocks."""
    usual = {"writer": 0, "file": 0, "size_blocks": len(blocks)}
    return Begin(t_ms=t_ms, seq=seq, kind=kind, blocks=tuple(blocks), **(usual | more))


def ledger() -> Ledger:
    """Three files made one after the other, then each overwritten; the cut comes at the end."""
    events: list[Event] = [Hello(t_ms=0.0, trial=7, mode="files")]
    for kind, first in ((OperationKind.CREATE, 1), (OperationKind.OVERWRITE, 4)):
        for file in range(FILES):
            t_ms, seq = 10.0 * len(events), first + file
            events += [begun(t_ms, seq, kind, file=file), Done(t_ms=t_ms + 10, seq=seq)]
    events.append(Cut(t_ms=10.0 * len(events)))
    return Ledger(events=tuple(events))


def readback(*blocks: Any, **more: Any) -> str:
    """Of files of one block each."""
    files = [
        {"file": at, "name": f"f{at}", "listed": True, "size": BLOCK_BYTES, "blocks": [block]}
        for at, block in enumerate(blocks)
    ]
    return json.dumps(readback_of(files, looked=FILES) | more)


def readback_of(files: Sequence[Any], *, looked: int, mode: str = "files") -> dict[str, Any]:
    """A read-back of these files alone; `looked` is the number of names that were looked for."""
    return {
        "mode": mode,
        "trial": 7,
        "looked": looked,
        "files": files,
        "temporaries": [],
        "unexpected": [],
        "complete": True,
    }


EVERYTHING = readback(4, 5, 6)
OLD = readback(1, 2, 3)
MIXED = readback(1, 5, 6)


def umount(step: Step, exit_code: int | None = 0) -> ToolOutput:
    """An unmounting: without a word when it worked."""
    return tool(step, "mount/mounted", name="umount", argv=("umount", "/mnt"), exit_code=exit_code)


STATUS = tool(Step.POOL_STATUS, "zpool/status-scrubbed")
DATA_ERRORS = replace(
    STATUS, stdout=STATUS.stdout.replace('"error_count":"0"', '"error_count":"2"')
)
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


def otherwise(made: Evidence, step: Step, **changes: Any) -> Evidence:
    """The same evidence, in which the outputs of a step are otherwise."""
    tools = (replace(one, **changes) if one.step == step else one for one in made.tools)
    return replace(made, tools=tuple(tools))


def refused(*steps: Step, why: str = "I/O error") -> tuple[ToolOutput, ...]:
    """Imports that were refused for this reason."""
    said: dict[str, Any] = {
        "exit_code": 1,
        "stdout": "",
        "stderr": f"cannot import 'tank': {why}\n",
    }
    return tuple(
        replace(STATUS, step=step, name="zpool", argv=("zpool",), **said) for step in steps
    )


def nas_log(*lines: str) -> ToolOutput:
    """A kernel log of the NAS with these lines at its end."""
    log = tool(Step.NAS_DMESG, "kernel/log-replayed", vm="nas")
    return replace(log, stdout=log.stdout + "".join(f"[    9.1] {line}\n" for line in lines))


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
