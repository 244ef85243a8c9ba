"""Evidence: everything a trial's folder holds, raw and complete, so that it can be judged again.

- `spec.json`: the trial: cell, seed, the version of ZFS, what the seed decided (`plan`), what each load
  was told (`loads`)
- `cut.json`: the cut, see `torture.facts.evidence.cut_document`
- `proof.json`: what was asserted of the chain before the load: write caches, and where a flush arrived
- `block-requests.jsonl`: what the client's disk had completed by the cut, in the time of the recording's
  log, see `torture.facts.evidence.block_requests`
- `ledger.jsonl`: see `torture.facts.evidence.ledger`
- `tools.jsonl`: one `ToolOutput` a line, in the order they were run
- `readback.json`: what `load read` printed; absent if it was not run
- `readback-after-repair.json`: the same, after fsck's repair; absent if there was none
- `administration.json`: what was done to the pool when the cut came, and whether it had returned
- `outage.json`: what did not come back after the cut, if something did not, see
  `torture.facts.evidence.outage_document`
- `manifest.json`: what of all that there was when the trial ended, see
  `torture.facts.evidence.manifest`
- `shelf-N.err`: what the server of the NAS's disks printed, for each of its lives
- `recordings.zip`: what the NAS's disks were asked, and views of what the cut left, if it was kept
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from torture.errors import HarnessError
from torture.facts.evidence.administration_document import ADMINISTRATION, AdministrationDocument
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.documents import document_or_none, strictly
from torture.facts.evidence.ledger import Ledger
from torture.facts.evidence.manifest import ManifestFinding, check_manifest
from torture.facts.evidence.outage_document import OUTAGE, Outage
from torture.facts.evidence.strict_json import strict_json
from torture.files import write_whole

SPEC = "spec.json"
CUT = "cut.json"
PROOF = "proof.json"
LEDGER = "ledger.jsonl"
TOOLS = "tools.jsonl"
READBACK = "readback.json"
READBACK_AFTER_REPAIR = "readback-after-repair.json"
_READBACKS = "readback*.json"
"""Every load has a name of its own for each of its two."""
RECORDINGS = "recordings.zip"
CUT_STATE = "cut.view.json"
"""Among the recordings: the disks as the cut left them."""
SECOND_CUT_STATE = "second-cut.view.json"
"""The same of a second cut, where there was one."""
CHECK_STATE = "check.view.json"
"""Among the recordings: the disks as the check found them."""


class Step(StrEnum):
    """What a tool was run for."""

    POOL_IMPORT = "pool-import"
    """`zpool import tank`, plain."""
    POOL_IMPORT_M = "pool-import-m"
    """`zpool import -m`: without the log device, losing what only it held."""
    POOL_IMPORT_REWIND = "pool-import-rewind"
    """`zpool import -m -F`: give up the last transactions too."""
    POOL_IMPORT_AGAIN = "pool-import-again"
    POOL_IMPORT_M_AGAIN = "pool-import-m-again"
    POOL_IMPORT_REWIND_AGAIN = "pool-import-rewind-again"
    """The same three, after a second cut."""
    POOL_REFUSALS = "pool-refusals"
    """What ZFS noted for itself, where no import brings the pool back."""
    POOL_STATUS = "pool-status"
    """`zpool status -j`, after the import and after the scrub; only the latter can vouch."""
    POOL_SYNC = "pool-sync"
    """`zpool sync`, before the check: the disks are then as the pool is."""
    POOL_SCRUB = "pool-scrub"
    """`zpool scrub -w`: returns when everything was read and verified."""
    POOL_BLOCKS = "pool-blocks"
    """`zdb -b`: every block is referred to once, while nothing was written to any disk of the pool."""
    POOL_BLOCKS_ASTIR = "pool-blocks-astir"
    """The same, and something was: it says nothing."""
    NAS_DMESG = "nas-dmesg"
    """Kernel log of the NAS that came back, from its boot to a second cut, or to the end of the scrub."""
    ADMINISTRATION_BEFORE = "administration-before"
    """What an administration is told by, in the NAS of the load; before it is issued."""
    ADMINISTRATION_STATE = "administration-state"
    """The same, in a NAS that came back."""
    ADMINISTRATION_HISTORY = "administration-history"
    """`zpool history -il` then: what the pool itself says was begun, and in which transaction group."""
    ADMINISTRATION_WAIT = "administration-wait"
    ADMINISTRATION_AT_END = "administration-at-end"
    """`zpool wait`, where it went on."""
    ADMINISTRATION_END = "administration-end"
    """The look before the check."""
    CLIENT_LOAD = "client-load"
    """What a load that is no ledger printed; each time that it ended."""
    CLIENT_UMOUNT = "client-umount"
    CLIENT_DETACH = "client-detach"
    """On a client that lived."""
    CLIENT_LOST_ROOT = "client-lost-root"
    """Console of a client that lived through the cut, and panicked or ran nothing any more after it."""
    CLIENT_DMESG = "client-dmesg"
    """Kernel log of the client that wrote the load."""
    FS_FIRST_CHECK = "fs-first-check"
    """On a fresh client, before anything mounts it: read-only, where that says something by then."""
    FS_MOUNT = "fs-mount"
    """On a fresh client: the mount that replays the journal."""
    FS_SCRUB = "fs-scrub"
    """Before the read-back: all copies are read, where the filesystem has several; nothing is mended."""
    FS_UMOUNT = "fs-umount"
    FS_CHECK = "fs-check"
    """Read-only, after the journal was replayed (or after the mount failed)."""
    FS_REPAIR = "fs-repair"
    FS_MOUNT_AFTER_REPAIR = "fs-mount-after-repair"
    FS_UMOUNT_AFTER_REPAIR = "fs-umount-after-repair"
    FS_CHECK_AFTER_REPAIR = "fs-check-after-repair"
    BOOT = "boot"
    """The VM, booted from the disk that the cut left; its console. 0: its agent ran a command."""
    BOOT_FSCK = "boot-fsck"
    """What fsck(8) said before it mounted its root."""
    BOOT_DMESG = "boot-dmesg"
    """Kernel log of the VM that came up."""
    BOOT_HALT = "boot-halt"
    """Its root is made read-only, as a shutdown does."""
    BOOT_AFTER_REPAIR = "boot-after-repair"
    BOOT_FSCK_AFTER_REPAIR = "boot-fsck-after-repair"
    """The same once a rescue system has looked, and mended what it found."""
    CHECK_DMESG = "check-dmesg"
    """Kernel log of the fresh client that checked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolOutput:
    """One run of one tool; `exit_code` is None when its deadline passed before it ended."""

    step: str
    vm: str
    name: str
    argv: tuple[str, ...]
    exit_code: int | None
    stdout: str
    stderr: str
    duration_ms: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """A trial's folder, read. `garbled_tools` counts lines of tools.jsonl that are no tool output.

    Read-backs stay text: whether they can be read is for the verdict to say.
    """

    spec: dict[str, Any]
    cut: CutDocument
    """Empty where it is missing or garbled."""
    ledger: Ledger
    """Up to the cut that was recovered, where a finding of the audit was confirmed by an earlier one."""
    tools: tuple[ToolOutput, ...]
    readbacks: Mapping[str, str]
    """Name of the document to its text; a load's is not there where it was not read back."""
    garbled_tools: int = 0
    outage: Outage | None = None
    """What did not come back, where something did not."""
    administration: AdministrationDocument | None = None
    """What was done to the pool when the cut came, where something was."""
    ignores_read_errors: bool = False
    """Whether an error in a read-back says nothing about the data: the disk failed, not the storage."""
    documents: frozenset[str] = frozenset()
    """The names of all JSON documents that are there."""
    manifest: ManifestFinding = field(default_factory=ManifestFinding)
    is_cut_read: bool = True
    """Whether `cut.json` is there and says something."""

    def output(self, step: Step) -> ToolOutput | None:
        """The last output of a step, or None if it was never run."""
        return next((tool for tool in reversed(self.tools) if tool.step == step), None)


def load_evidence(folder: Path) -> Evidence:
    """Read a trial's folder; raises `HarnessError` only when there is no folder or no cell in it.

    Other files that are missing or garbled are left empty: the verdict says `inconclusive`.
    """
    spec = _read_object(folder / SPEC)
    if not spec:
        raise HarnessError(f"no readable {SPEC} in {folder}", hint=f"ls -l {folder}")
    tools, garbled = _read_tools(folder / TOOLS)
    told_of_cut = _read_object(folder / CUT)
    cut = CutDocument.from_json(told_of_cut)
    return Evidence(
        spec=spec,
        cut=cut,
        ledger=cut.confirmed.ledger_of(_read_bytes(folder / LEDGER) or b""),
        tools=tools,
        readbacks={
            path.name: path.read_text(errors="backslashreplace")
            for path in sorted(folder.glob(_READBACKS))
        },
        garbled_tools=garbled,
        outage=document_or_none(Outage, _read_object(folder / OUTAGE)),
        administration=document_or_none(
            AdministrationDocument, _read_object(folder / ADMINISTRATION)
        ),
        is_cut_read=bool(told_of_cut),
        documents=frozenset(path.name for path in folder.glob("*.json*")),
        manifest=check_manifest(folder, spec),
    )


def write_document(folder: Path, name: str, content: dict[str, Any] | str) -> None:
    """Store a whole document (SPEC, CUT, READBACK, ...): complete or not there at all."""
    text = content if isinstance(content, str) else json.dumps(content, indent=1) + "\n"
    write_whole(folder / name, text.encode(errors="backslashreplace"))


def append_tool(folder: Path, output: ToolOutput) -> None:
    """Append one tool's output and make it durable."""
    append_line(folder / TOOLS, json.dumps(asdict(output)).encode() + b"\n")


def append_line(path: Path, line: bytes) -> None:
    """Append one whole line to a JSON Lines file and make it durable."""
    with path.open("ab") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def _read_tools(path: Path) -> tuple[tuple[ToolOutput, ...], int]:
    tools: list[ToolOutput] = []
    garbled = 0
    for line in (_read_bytes(path) or b"").split(b"\n"):
        if not line.strip():
            continue
        try:
            tools.append(strictly(ToolOutput, strict_json(line)))
        except ValueError:
            garbled += 1
    return tuple(tools), garbled


def _read_object(path: Path) -> dict[str, Any]:
    try:
        parsed = strict_json(_read_bytes(path) or b"")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _read_bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
