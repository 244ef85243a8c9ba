"""Evidence: everything in a trial's folder, raw and complete, for another judgement at any time.

- `spec.json`: the trial: cell, seed, the version of ZFS, the seed's draws (`plan`), each load's
  instructions (`loads`)
- `cut.json`: the cut, see `torture.facts.evidence.cut_document`
- `proof.json`: the assertions about the chain before the load: write caches, a flush's way
- `verifiers.json`: an NFS server's write verifiers, before the cut and after its return
- `block-requests.jsonl`: the requests that the client's disk had completed by the cut, in the time
  of the recording, see `torture.facts.evidence.requests`
- `ledger.jsonl`: see `torture.facts.evidence.ledger`
- `tools.jsonl`: one `ToolOutput` a line, in the order of the runs
- `readback.json`: the output of `load read`; absent if it was not run
- `readback-after-repair.json`: the same, after fsck's repair, if there was one
- `administration.json`: the command on the pool at the cut, and whether it had returned
- `outage.json`: the thing that did not come back after the cut, if there is one
- the documents of features, see `Part`
- `manifest.json`: the list of these files when the trial ended, see
  `torture.facts.evidence.manifest`
- `shelf-N.err`: the output of the server of the NAS's disks, for each of its lives
- `recordings.zip`: the requests for the NAS's disks, and views of the disks after the cut, if it
  was kept
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from torture.discovery import offered_by_features
from torture.errors import HarnessError
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.documents import (
    Count,
    Document,
    Text,
    document_or_none,
    json_object,
    strict_json,
    strictly,
)
from torture.facts.evidence.ledger import Ledger
from torture.facts.evidence.manifest import ManifestFinding, check_manifest
from torture.files import write_whole


class Part(Document, frozen=True, kw_only=True):
    """A feature's document. Without a finding of its own it neither shows nor leaves open anything."""

    FILE: ClassVar[str]
    """Its file in the evidence."""
    FIELD: ClassVar[str]
    """Its name in the record of the trial."""
    LACKING: ClassVar[str] = ""
    """Why a trial that was to leave it, and did not, leaves something open."""

    @property
    def verdicts(self) -> tuple[str, ...]:
        """The verdicts that it shows beside that of the trial, in no order."""
        return ()

    @property
    def shows_loss(self) -> bool:
        """Whether it shows lost or damaged data."""
        return False

    @property
    def in_brief(self) -> str:
        """The finding on a line."""
        return ""

    def left_open(self, *, shown: str) -> Iterator[str]:
        """Why it says nothing for certain; `shown`: the verdict of the other evidence."""
        del shown
        yield from ()

    def in_words(self) -> Iterator[str]:
        """Lines for the explanation of the trial."""
        yield from ()


@cache
def part_kinds() -> tuple[type[Part], ...]:
    """Every kind, by the names of their features."""
    return offered_by_features("documents", "DOCUMENT")


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    """A command that was run in a guest. `exit_code` is None when its deadline passed first."""

    vm: str
    argv: tuple[str, ...]
    exit_code: int | None
    stdout: str
    stderr: str = ""
    duration_ms: int = 0

    @property
    def tool(self) -> str:
        """The program's name, without its folder."""
        return PurePosixPath(self.argv[0]).name


SPEC = "spec.json"
CUT = "cut.json"
PROOF = "proof.json"
VERIFIERS = "verifiers.json"
ADMINISTRATION = "administration.json"
OUTAGE = "outage.json"
LEDGER = "ledger.jsonl"
TOOLS = "tools.jsonl"
READBACK = "readback.json"
READBACK_AFTER_REPAIR = "readback-after-repair.json"
_READBACKS = "readback*.json"
"""Each load has its own name for each of its two read-backs."""
RECORDINGS = "recordings.zip"
CUT_STATE = "cut.view.json"
"""Among the recordings: the disks as the cut left them."""
SECOND_CUT_STATE = "second-cut.view.json"
"""The same after a second cut, where there was one."""
CHECK_STATE = "check.view.json"
"""Among the recordings: the disks as the check found them."""


class Step(StrEnum):
    """The purpose of a tool's run."""

    POOL_IMPORT = "pool-import"
    """`zpool import tank`, plain."""
    POOL_IMPORT_M = "pool-import-m"
    """`zpool import -m`: without the log device, at the loss of the data that only it held."""
    POOL_IMPORT_REWIND = "pool-import-rewind"
    """`zpool import -m -F`: give up the last transactions too."""
    POOL_IMPORT_AGAIN = "pool-import-again"
    POOL_IMPORT_M_AGAIN = "pool-import-m-again"
    POOL_IMPORT_REWIND_AGAIN = "pool-import-rewind-again"
    """The same three, after a second cut."""
    POOL_REFUSALS = "pool-refusals"
    """ZFS's own notes, where no import brings the pool back."""
    POOL_STATUS = "pool-status"
    """`zpool status -j`, after the import and after the scrub; only the scrub's status can vouch."""
    POOL_SYNC = "pool-sync"
    """`zpool sync`, before the check: the disks then hold the whole pool."""
    POOL_SCRUB = "pool-scrub"
    """`zpool scrub -w`: returns when ZFS has read and verified everything."""
    POOL_BLOCKS = "pool-blocks"
    """`zdb -b`: every block has one reference. Nothing wrote to the pool's disks meanwhile."""
    POOL_BLOCKS_ASTIR = "pool-blocks-astir"
    """The same during writes to the disks: it proves nothing."""
    NAS_DMESG = "nas-dmesg"
    """Kernel log of the returned NAS, from its boot to a second cut, or to the end of the scrub."""
    ADMINISTRATION_BEFORE = "administration-before"
    """The state by which an administration is seen, in the NAS of the load, before the command is
    issued."""
    ADMINISTRATION_STATE = "administration-state"
    """The same, in a NAS that came back."""
    ADMINISTRATION_HISTORY = "administration-history"
    """`zpool history -il` then: the pool's own note of the beginning, and its transaction group."""
    ADMINISTRATION_WAIT = "administration-wait"
    ADMINISTRATION_AT_END = "administration-at-end"
    """`zpool wait`, where the administration went on."""
    ADMINISTRATION_END = "administration-end"
    """The look before the check."""
    FORMER_IMPORT = "former-import"
    """On a node whose pool another node took over: its import at boot; 0: it has the pool, too."""
    CLIENT_LOAD = "client-load"
    """The output of a load without a ledger, each time that it ended."""
    CLIENT_FIO = "client-fio"
    """The report of a measured job."""
    REMEDY_WAIT = "remedy-wait"
    """On a client whose writers have all failed, once the NAS is back: does a write succeed by itself?"""
    REMEDY_LOG_IN = "remedy-log-in"
    """There: unmount, attach the NAS's disk or directory anew, mount, and write."""
    CLIENT_UMOUNT = "client-umount"
    CLIENT_DETACH = "client-detach"
    """The detachment on a client that lived."""
    CLIENT_LOST_ROOT = "client-lost-root"
    """Console of a client that lived through the cut, and then panicked or ran nothing more."""
    CLIENT_DMESG = "client-dmesg"
    """Kernel log of the client that wrote the load."""
    IMAGE_CHECK = "image-check"
    """On a fresh hypervisor, before the image is open: `qemu-img check`, or `qemu-img info`."""
    IMAGE_OPEN = "image-open"
    """There: QEMU opens the image."""
    FS_FIRST_CHECK = "fs-first-check"
    """On a fresh client, before any mount: read-only, where a check can say something then."""
    FS_MOUNT = "fs-mount"
    """On a fresh client: the mount that replays the journal."""
    FS_SCRUB = "fs-scrub"
    """Before the read-back: reads all copies where the filesystem has several, and mends none."""
    FS_UMOUNT = "fs-umount"
    FS_CHECK = "fs-check"
    """Read-only, after the journal was replayed (or after the mount failed)."""
    FS_REPAIR = "fs-repair"
    FS_MOUNT_AFTER_REPAIR = "fs-mount-after-repair"
    FS_UMOUNT_AFTER_REPAIR = "fs-umount-after-repair"
    FS_CHECK_AFTER_REPAIR = "fs-check-after-repair"
    BOOT = "boot"
    """The console of the VM that boots from the cut's disk. 0: its agent ran a command."""
    BOOT_FSCK = "boot-fsck"
    """The output of fsck(8) before the mount of the root."""
    BOOT_DMESG = "boot-dmesg"
    """Kernel log of the VM that came up."""
    BOOT_HALT = "boot-halt"
    """The VM's root becomes read-only, as at a shutdown."""
    BOOT_AFTER_REPAIR = "boot-after-repair"
    BOOT_FSCK_AFTER_REPAIR = "boot-fsck-after-repair"
    """The same after a rescue system has looked at the disk, and repaired it."""
    CHECK_DMESG = "check-dmesg"
    """Kernel log of the fresh client that checked."""


IMPORTS = (Step.POOL_IMPORT, Step.POOL_IMPORT_M, Step.POOL_IMPORT_REWIND)
"""An operator's tries, in this order: each next one gives more up."""
IMPORTS_AGAIN = (Step.POOL_IMPORT_AGAIN, Step.POOL_IMPORT_M_AGAIN, Step.POOL_IMPORT_REWIND_AGAIN)
"""The same after a second cut."""


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


class AdministrationDocument(Document, frozen=True, kw_only=True):
    """A command that was issued in the NAS before its power was cut."""

    name: Text
    """The name by which the axis calls it."""
    moment: str = ""
    """The point in its course at which a cut was due; empty where the trial did not reach it."""
    issued_seq: Count | None = None
    """The last event of the shelf's recording when the command was sent."""
    returned: Count | None = None
    """The exit code on the NAS's console before the cut; None when the command had not returned."""


class Outage(Document, frozen=True, kw_only=True):
    """Something that the NAS, or a client of it, did not do within an operator's patience."""

    what: Text
    """The thing that did not come back."""
    stage: str = ""
    """The trial's stage that waited for it."""
    machine: str = ""
    """The role of the machine that should have done it, as in the name of its console log."""
    of_nas: bool = True
    """Whether it is the NAS: then the pool did not come back, else something on the pool."""
    kernel: tuple[str, ...] = ()
    """The end of that machine's kernel log, with the stacks of the tasks that hang."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """A trial's folder, read. `garbled_tools` counts lines of tools.jsonl that are no tool output.

    Read-backs stay text: the verdict says whether they are readable.
    """

    spec: dict[str, Any]
    cut: CutDocument
    """The cut; empty where it is missing or garbled."""
    ledger: Ledger
    """The ledger up to the cut that was recovered. This may be an earlier one that confirms a
    finding."""
    tools: tuple[ToolOutput, ...]
    readbacks: Mapping[str, str]
    """Name of the document to its text. A load without a read-back has no text."""
    garbled_tools: int = 0
    outage: Outage | None = None
    """The thing that did not come back, if there is one."""
    administration: AdministrationDocument | None = None
    """The command on the pool at the cut, if there was one."""
    parts: Mapping[str, Part] = field(default_factory=dict)
    """The readable documents of features, by their files."""
    ignores_read_errors: bool = False
    """Whether a read error proves nothing about the data: the disk failed, not the storage."""
    documents: frozenset[str] = frozenset()
    """The names of all JSON documents in the folder."""
    manifest: ManifestFinding = field(default_factory=ManifestFinding)
    is_cut_read: bool = True
    """Whether `cut.json` exists and holds a cut."""

    @property
    def cut_ms(self) -> float | None:
        """When the NAS lost power: by the ledger's mark, or else by the cut's document."""
        return self.cut.t_ms if self.ledger.cut_ms is None else self.ledger.cut_ms

    def output(self, step: Step) -> ToolOutput | None:
        """The last output of a step, or None if it was never run."""
        return next((tool for tool in reversed(self.tools) if tool.step == step), None)


def load_evidence(folder: Path) -> Evidence:
    """Read a trial's folder; raises `HarnessError` only where there is no folder or no cell in it.

    Other missing or garbled files are left empty: the verdict is then `inconclusive`.
    """
    spec = _read_object(folder / SPEC)
    if not spec:
        raise HarnessError(f"no readable {SPEC} in {folder}", hint=f"ls -l {folder}")
    tools, garbled = _read_tools(folder / TOOLS)
    said = document_or_none(CutDocument, _read_object(folder / CUT) or None)
    cut = said or CutDocument()
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
        parts=dict(_parts_in(folder)),
        is_cut_read=said is not None,
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


def _parts_in(folder: Path) -> Iterator[tuple[str, Part]]:
    for kind in part_kinds():
        part = document_or_none(kind, _read_object(folder / kind.FILE) or None)
        if part is not None:
            yield kind.FILE, part


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
    return json_object(_read_bytes(path) or b"") or {}


def _read_bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
