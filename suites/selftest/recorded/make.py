"""Records real outputs of checkers and ZFS tools, one JSON file each, for the parsers' tests.

`make.py images` makes filesystems in image files, damages them and runs the checkers on the files.
It mounts nothing and needs no root, but e2fsprogs, btrfs-progs and xfsprogs.
`make.py trial FOLDER STEP TOOL/CASE` copies one output from a real trial's evidence.
`make.py evidence FOLDER...` packs all that is judged of real trials, a file each below `evidence/`.
"""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2]))

from torture.facts.evidence.folder import Step, ToolOutput, load_evidence  # noqa: E402 - path set above
from torture.facts.evidence.manifest import MANIFEST  # noqa: E402

DISK = "disk.img"
PACKED_BYTES_MAX = 300_000
NODE_BYTES = 16384
_TOOL_DEADLINE_S = 120


def main(arguments: list[str]) -> int:
    """Record what the arguments ask for."""
    if arguments == ["images"]:
        with tempfile.TemporaryDirectory() as scratch:
            _fill(Path(scratch))
            for make in (_ext4, _btrfs, _xfs):
                make(Path(scratch))
        return 0
    if len(arguments) > 1 and arguments[0] == "evidence":
        for folder in map(Path, arguments[1:]):
            _pack(folder)
        return 0
    if len(arguments) == 4 and arguments[0] == "trial":
        output = load_evidence(Path(arguments[1])).output(Step(arguments[2]))
        if output is None:
            print(f"no {arguments[2]} in {arguments[1]}", file=sys.stderr)
            return 1
        _store(arguments[3], output, "a guest, in a trial")
        return 0
    print(__doc__, file=sys.stderr)
    return 2


def _pack(folder: Path) -> None:
    """The documents of a trial, by its verdict; recordings and consoles are not judged."""
    verdict = json.loads((folder / MANIFEST).read_bytes())["verdict"]
    target = HERE / "evidence" / f"{verdict}.{folder.name}.zip"
    target.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as archive:
        for path in sorted(folder.glob("*.json*")):
            archive.write(path, path.name)
    if target.stat().st_size > PACKED_BYTES_MAX:
        raise SystemExit(f"{target} has {target.stat().st_size} bytes")


def _store(case: str, output: ToolOutput, where: str) -> None:
    path = HERE / f"{case}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"recorded": where} | asdict(output), indent=1) + "\n")
    print(f"{case}: exit {output.exit_code}")


def _record(scratch: Path, case: str, step: Step, *argv: str) -> None:
    completed = _run(scratch, *argv)
    output = ToolOutput(
        step=step,
        vm="image",
        name=argv[0],
        argv=argv,
        exit_code=completed.returncode,
        stdout=completed.stdout,
        stderr=completed.stderr,
        duration_ms=0,
    )
    _store(case, output, "the tool itself, on an image file")


def _run(scratch: Path, *argv: str, said: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        cwd=scratch,
        input=said or "",
        capture_output=True,
        text=True,
        errors="backslashreplace",
        timeout=_TOOL_DEADLINE_S,
        check=False,
    )


def _must(scratch: Path, *argv: str) -> str:
    completed = _run(scratch, *argv)
    completed.check_returncode()
    return completed.stdout


def _fill(scratch: Path) -> None:
    """Files to put into the filesystems."""
    (scratch / "files").mkdir()
    for number in range(31):
        content = bytes((number, 255 - number)) * 2048 * (1 + number % 12)
        (scratch / "files" / f"f{number:03d}").write_bytes(content)


def _overwrite(scratch: Path, offset: int, data: bytes) -> None:
    with (scratch / DISK).open("r+b") as disk:
        disk.seek(offset)
        disk.write(data)


def _empty_disk(scratch: Path, mib: int) -> None:
    (scratch / DISK).unlink(missing_ok=True)
    with (scratch / DISK).open("wb") as disk:
        disk.truncate(mib << 20)


def _ext4(scratch: Path) -> None:
    def fresh() -> None:
        _empty_disk(scratch, 64)
        _must(scratch, "mke2fs", "-q", "-t", "ext4", "-b", "4096", "-d", "files", DISK)

    def debugfs(*commands: str) -> str:
        script = scratch / "commands"
        script.write_text("\n".join(commands) + "\n")
        return _run(scratch, "debugfs", "-w", "-f", "commands", DISK).stdout

    def look(case: str) -> None:
        _record(scratch, f"e2fsck/{case}", Step.FS_CHECK, "e2fsck", "-f", "-n", DISK)

    def mend(case: str) -> None:
        _record(scratch, f"e2fsck/{case}", Step.FS_REPAIR, "e2fsck", "-f", "-y", DISK)

    def look_mend_look(case: str) -> None:
        look(f"{case}-look")
        mend(f"{case}-mend")
        look(f"{case}-after")

    fresh()
    look("clean")
    debugfs("jo", "jw -b 9 /dev/zero", "jc")
    look_mend_look("dirty-journal")
    fresh()
    debugfs(
        "clri f003",
        "clri f004",
        "set_inode_field f005 block[0] 9999999",
        "set_inode_field f006 links_count 7",
    )
    look_mend_look("bad-inodes")
    fresh()
    blocks = debugfs("blocks /").splitlines()[-1]
    _overwrite(scratch, int(blocks.split()[0]) * 4096, b"\xa5" * 4096)
    look_mend_look("root-directory")
    fresh()
    dump = _must(scratch, "dumpe2fs", DISK)
    table = next(line for line in dump.splitlines() if "Inode table at" in line)
    _overwrite(scratch, int(table.split()[3].split("-")[0]) * 4096, b"\xa5" * 8192)
    look_mend_look("inode-table")
    _empty_disk(scratch, 64)
    look("no-filesystem-look")
    mend("no-filesystem-mend")
    (scratch / DISK).unlink()
    look("no-device")


def _btrfs(scratch: Path) -> None:
    def fresh() -> None:
        _empty_disk(scratch, 300)
        _must(scratch, "mkfs.btrfs", "-q", "--rootdir", "files", DISK)

    def look(case: str) -> None:
        argv = ("btrfs", "check", "--readonly", DISK)
        _record(scratch, f"btrfs/{case}", Step.FS_CHECK, *argv)

    def look_mend_look(case: str) -> None:
        look(f"{case}-look")
        argv = ("btrfs", "check", "--repair", "--force", DISK)
        _record(scratch, f"btrfs/{case}-mend", Step.FS_REPAIR, *argv)
        look(f"{case}-after")

    def root_of(tree: str) -> int:
        dump = _must(scratch, "btrfs", "inspect-internal", "dump-tree", "-t", tree, DISK)
        return int(next(line for line in dump.splitlines() if line.startswith("leaf")).split()[1])

    def change(logical: int, edit: Callable[[bytearray], None], *, copies: int = 2) -> None:
        answer = _run(scratch, "btrfs-map-logical", "-l", str(logical), DISK).stdout
        lines = [line.split() for line in answer.splitlines() if " physical " in line]
        for words in lines[:copies]:
            offset = int(words[words.index("physical") + 1])
            with (scratch / DISK).open("rb") as disk:
                disk.seek(offset)
                node = bytearray(disk.read(NODE_BYTES))
            edit(node)
            _overwrite(scratch, offset, bytes(node))

    fresh()
    look("clean")
    change(root_of("2"), _wipe, copies=1)
    look("one-bad-copy")
    for name, tree in (("fs-tree", "5"), ("extent-tree", "2"), ("root-tree", "1")):
        fresh()
        change(root_of(tree), _wipe)
        look_mend_look(f"{name}-wiped")
    fresh()
    change(root_of("3"), _wipe)
    look_mend_look("chunk-tree-wiped")
    fresh()
    change(root_of("5"), _age)
    look_mend_look("fs-tree-old")
    fresh()
    change(root_of("5"), _add_links)
    look_mend_look("wrong-link-count")
    _empty_disk(scratch, 300)
    look("no-filesystem-look")
    (scratch / DISK).unlink()
    look("no-device")


def _wipe(node: bytearray) -> None:
    node[:] = bytes(NODE_BYTES)


def _age(node: bytearray) -> None:
    """An older generation, with a right checksum: what a lost write leaves behind."""
    (generation,) = struct.unpack_from("<Q", node, 80)
    struct.pack_into("<Q", node, 80, generation - 2)
    _seal(node)


def _add_links(node: bytearray) -> None:
    """A wrong link count in the first inode of 4096 bytes."""
    item = struct.pack("<QQQI", 4096, 4096, 0, 1)
    at = node.index(item)
    struct.pack_into("<QQQI", node, at, 4096, 4096, 0, 5)
    _seal(node)


def _seal(node: bytearray) -> None:
    """The crc32c (Castagnoli) of everything behind the checksum."""
    crc = 0xFFFFFFFF
    for byte in node[32:]:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    struct.pack_into("<I", node, 0, crc ^ 0xFFFFFFFF)


def _xfs(scratch: Path) -> None:
    names = sorted(path.name for path in (scratch / "files").iterdir())
    proto = ["/x", "0 0", "d--755 0 0", *(f"{n} ---644 0 0 files/{n}" for n in names), "$"]
    (scratch / "proto").write_text("\n".join(proto) + "\n")

    def fresh() -> None:
        _empty_disk(scratch, 320)
        _must(scratch, "mkfs.xfs", "-q", "-f", "-p", "proto", DISK)

    def look_mend_look(case: str) -> None:
        _record(scratch, f"xfs/{case}-look", Step.FS_CHECK, "xfs_repair", "-n", DISK)
        _record(scratch, f"xfs/{case}-mend", Step.FS_REPAIR, "xfs_repair", DISK)
        _record(scratch, f"xfs/{case}-after", Step.FS_CHECK, "xfs_repair", "-n", DISK)

    def damage(*commands: str) -> None:
        options = [word for command in commands for word in ("-c", command)]
        _run(scratch, "xfs_db", "-x", *options, DISK)

    fresh()
    _record(scratch, "xfs/clean", Step.FS_CHECK, "xfs_repair", "-n", DISK)
    damage("agf 0", "write -d freeblks 7")
    look_mend_look("free-blocks")
    fresh()
    damage("path /f003", "write -d core.magic 0")
    look_mend_look("inode")
    fresh()
    _overwrite(scratch, 0, bytes(512))
    look_mend_look("superblock")
    _empty_disk(scratch, 320)
    look_mend_look("no-filesystem")
    (scratch / DISK).unlink()
    _record(scratch, "xfs/no-device", Step.FS_CHECK, "xfs_repair", "-n", DISK)


if __name__ == "__main__":
    shutil.which("mke2fs") or sys.exit("install e2fsprogs, btrfs-progs and xfsprogs first")
    sys.exit(main(sys.argv[1:]))
