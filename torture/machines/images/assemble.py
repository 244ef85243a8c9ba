"""The quick layer: base, kernel modules and the suite's files become one squashfs. Needs no root."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from torture.errors import HarnessError
from torture.machines.images.recipes import RECIPES, Recipe, tree_files
from torture.machines.images.source_trees import patched_modules

SOURCE_DATE_EPOCH = 1735689600
"""The time of every file without a time of its own: 2025-01-01, before any package of the suite."""

DROPPED = (
    "boot",
    "dev",
    "etc/apt",
    "etc/machine-id",
    "etc/postgresql",
    "etc/resolv.conf",
    "etc/ssl/private",
    "usr/share/bash-completion",
    "usr/share/bug",
    "usr/share/doc",
    "usr/share/doc-base",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/man",
    "usr/share/zoneinfo",
    "var/cache",
    "var/lib/apt",
    "var/lib/dpkg",
    "var/lib/postgresql",
    "var/lib/systemd",
    "var/log",
)
"""Parts of a base that are left out: records of its making (not reproducible), and files unused in
a guest."""

_OF_THE_NAS = "nas/"
"""The folder in which a stage leaves ZFS's tools, if it built them; see
`vmimages/zfs/source/build.sh`."""

MOUNT_POINTS = ("dev", "proc", "run", "sys", "tmp", "var/log", "var/cache")

_UDEV_RULES = "usr/lib/udev/rules.d"
_SQUASH_DEADLINE_S = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """One path of the root; its content, if it has one, is read from `tar` at packing."""

    info: tarfile.TarInfo
    content: bytes = b""
    tar: tarfile.TarFile | None = None


def assemble(
    recipe: Recipe,
    *,
    base: Path,
    kernel: Path,
    into: Path,
    modules: Path | None = None,
    added: Path | None = None,
) -> str:
    """Write `root.sqfs`, `vmlinuz` and `initrd` into a folder; return the kernel's release.

    `base`, `kernel`, `modules` and `added` are the archives of the slow layer. The same input gives
    the same bytes.
    Raises `HarnessError` when the archives do not fit together or the disk is full.
    """
    with ExitStack() as opened:
        base_tar, kernel_tar = (opened.enter_context(tarfile.open(one)) for one in (base, kernel))
        added_tar = None if added is None else opened.enter_context(tarfile.open(added))
        release = read_member(kernel_tar, "./release").decode().strip()
        if added_tar is not None:
            _must_be_built_for(release, added_tar)
        (into / "vmlinuz").write_bytes(read_member(kernel_tar, "./vmlinuz"))
        wanted = recipe.kernel.initrd_modules if recipe.kernel else ()
        patched: dict[str, bytes] = {}
        if modules is not None:
            known = {name.removeprefix("./") for name in kernel_tar.getnames()}
            patched = patched_modules(modules, release=release, known=known)
        (into / "initrd").write_bytes(
            build_initrd(kernel_tar, release, wanted, RECIPES / "boot" / "init", patched)
        )
        # afterwards, as it renames the members of the archives
        entries = _root_entries(recipe, base_tar, kernel_tar, into, added_tar)
        _squash([_patched(entry, patched) for entry in entries], into / "root.sqfs")
    return release


def _must_be_built_for(release: str, added: tarfile.TarFile) -> None:
    built_for = read_member(added, "./release").decode().strip()
    if built_for != release:
        raise HarnessError(
            f"modules were built for the kernel {built_for}, and the image has {release}: the mirror "
            "moved between two builds",
            hint="tools/images build --fresh",
        )


def _root_entries(
    recipe: Recipe,
    base: tarfile.TarFile,
    kernel: tarfile.TarFile,
    scratch: Path,
    added: tarfile.TarFile | None = None,
) -> list[_Entry]:
    """Everything in the root, each path once: later sources win over earlier ones."""
    entries: dict[str, _Entry] = {}
    for entry in _base_entries(base, recipe):
        entries[entry.info.name] = entry
    for entry in _kernel_entries(kernel, _OF_THE_NAS if recipe.follows_zfs else ""):
        entries[entry.info.name] = entry
    for entry in () if added is None else _added_entries(added):
        entries[entry.info.name] = entry
    ours = {name: _folder(name) for name in MOUNT_POINTS}
    ours["etc/machine-id"] = _file("etc/machine-id", b"", executable=False)
    for tree in recipe.files:
        for path in tree_files(tree):
            name = str(path.relative_to(tree))
            executable = bool(path.stat().st_mode & 0o100)
            ours[name] = _file(name, path.read_bytes(), executable=executable)
    for tree, target in recipe.python:
        for name, content in _compiled(tree, target, base, scratch).items():
            ours[name] = _file(name, content, executable=False)
    for name in sorted(ours):
        for parent in [str(path) for path in Path(name).parents if str(path) != "."][::-1]:
            if not entries.setdefault(parent, _folder(parent)).info.isdir():
                raise HarnessError(
                    f"{name!r} of {recipe.name!r} lies below {parent!r}, which is a link",
                    hint="put the file where the link points, e.g. usr/sbin instead of sbin",
                )
        entries[name] = ours[name]
    return [entries[name] for name in sorted(entries)]


def _base_entries(base: tarfile.TarFile, recipe: Recipe) -> Iterator[_Entry]:
    for info in base:
        info.name = info.name.removeprefix("./").strip("/")
        if info.name in ("", "."):
            continue
        if any(info.name == gone or info.name.startswith(gone + "/") for gone in DROPPED):
            continue
        folder, _, leaf = info.name.rpartition("/")
        if folder == _UDEV_RULES and recipe.udev_rules and leaf not in recipe.udev_rules:
            continue
        yield _entry_of(base, info)


def _kernel_entries(kernel: tarfile.TarFile, tools: str) -> Iterator[_Entry]:
    """The modules, and the content of the folder `tools`, if given, as if it were the root."""
    for info in kernel:
        info.name = info.name.removeprefix("./").strip("/")
        if info.name.startswith("usr/lib/modules"):
            yield _entry_of(kernel, info)
        elif tools and info.name.startswith(tools):
            info.name = info.name.removeprefix(tools)
            if info.islnk():
                info.linkname = info.linkname.removeprefix("./").removeprefix(tools)
            yield _entry_of(kernel, info)


def _added_entries(added: tarfile.TarFile) -> Iterator[_Entry]:
    for info in added:
        info.name = info.name.removeprefix("./").strip("/")
        if info.name.startswith("usr/"):
            yield _entry_of(added, info)


def _patched(entry: _Entry, patched: Mapping[str, bytes]) -> _Entry:
    name = entry.info.name
    return _file(name, patched[name], executable=False) if name in patched else entry


def _entry_of(tar: tarfile.TarFile, info: tarfile.TarInfo) -> _Entry:
    if info.islnk():
        info.linkname = info.linkname.removeprefix("./")
    return _Entry(info=info, tar=tar if info.isreg() else None)


def _file(name: str, content: bytes, *, executable: bool) -> _Entry:
    info = tarfile.TarInfo(name)
    info.mode = 0o755 if executable else 0o644
    info.size = len(content)
    info.mtime = SOURCE_DATE_EPOCH
    return _Entry(info=info, content=content)


def _folder(name: str) -> _Entry:
    info = tarfile.TarInfo(name)
    info.type = tarfile.DIRTYPE
    info.mode = 0o1777 if name == "tmp" else 0o755
    info.mtime = SOURCE_DATE_EPOCH
    return _Entry(info=info)


def _compiled(tree: Path, target: str, base: tarfile.TarFile, scratch: Path) -> dict[str, bytes]:
    """The sources of a Python package and their bytecode, by path in the guest.

    The bytecode must come from the guest's own Python, whose version differs from the host's. It
    runs here by the base's own loader and libraries, so that the build needs no root for a chroot.
    """
    files = {f"{target}/{path.relative_to(tree)}": path.read_bytes() for path in tree_files(tree)}
    if not files:
        return {}
    with tempfile.TemporaryDirectory(dir=scratch) as work:
        root = Path(work)
        _extract_python(base, root)
        for name, content in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        lib = root / "usr/lib/x86_64-linux-gnu"
        command = [
            str(lib / "ld-linux-x86-64.so.2"), "--library-path", str(lib),
            str(next((root / "usr/bin").glob("python3.[0-9]*"))),
            "-I", "-m", "compileall", "-q", "-s", str(root), "-p", "/",
            "--invalidation-mode", "unchecked-hash", str(root / target),
        ]  # fmt: skip
        done = subprocess.run(
            command,
            env={"PYTHONHOME": str(root / "usr")},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode:
            raise HarnessError(
                f"{tree} does not compile in the guest's Python:\n{done.stdout}{done.stderr}",
                hint="correct the file named above",
            )
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in sorted((root / target).rglob("*"))
            if path.is_file()
        }


def _extract_python(base: tarfile.TarFile, root: Path) -> None:
    """Unpack the guest's Python, its library and the loader below `root`."""
    wanted = ("./usr/bin/python3.", "./usr/lib/python3.", "./usr/lib/x86_64-linux-gnu/lib")
    loader = "./usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
    # the archive is the suite's own; an attribute, as Debian 12's Python has no parameter for it
    base.extraction_filter = tarfile.tar_filter if hasattr(tarfile, "tar_filter") else None
    for info in base:
        name = info.name if info.name.startswith("./") else f"./{info.name}"
        if (name.startswith(wanted) or name == loader) and not info.isdev():
            base.extract(info, root)


def _squash(entries: list[_Entry], path: Path) -> None:
    """Pack the entries, in this order, into a squashfs; lz4, because the guest is emulated."""
    command = ["tar2sqfs", "--quiet", "--compressor", "lz4", "--num-jobs", "2", str(path)]
    with tempfile.TemporaryFile(dir=path.parent) as log:
        try:
            packer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        except FileNotFoundError:
            raise HarnessError(
                "tar2sqfs is not installed", hint="apt-get install squashfs-tools-ng"
            ) from None
        assert packer.stdin
        try:
            with (
                packer.stdin as pipe,
                tarfile.open(fileobj=pipe, mode="w|", format=tarfile.PAX_FORMAT) as tar,
            ):
                for entry in entries:
                    stream = entry.tar.extractfile(entry.info) if entry.tar else None
                    tar.addfile(entry.info, stream or io.BytesIO(entry.content))
        except BrokenPipeError:
            pass  # the packer prints the reason, see below
        code = packer.wait(timeout=_SQUASH_DEADLINE_S)
        log.seek(0)
        printed = log.read().decode(errors="replace").strip()
    if code:
        raise HarnessError(
            f"tar2sqfs failed with exit code {code}: {printed}",
            hint=f"check whether the disk of {path.parent} is full, then build again",
        )


_NEWC_MAGIC = b"070701"
_DIRECTORY = 0o040755
_EXECUTABLE = 0o100755


def module_order(dep: str, builtin: str, wanted: Sequence[str]) -> list[str]:
    """Paths of the modules to load, each after those it needs, as insmod wants them.

    `dep` and `builtin` are the texts of depmod's `modules.dep` and `modules.builtin`
    (modules.dep(5)); built-in modules are left out. Raises `HarnessError` for an unknown module.
    """
    needs: dict[str, tuple[str, list[str]]] = {}
    for line in dep.splitlines():
        path, _, rest = line.partition(":")
        # modules.dep lists all needed modules, not only the direct ones, nearest first.
        needs[_module_name(path)] = (path, rest.split()[::-1])
    built_in = {_module_name(path) for path in builtin.split()}
    order: list[str] = []
    for name in wanted:
        if name in built_in:
            continue
        if name not in needs:
            raise HarnessError(
                f"the kernel has no module {name!r}", hint="correct initrd_modules in the recipe"
            )
        path, before = needs[name]
        order += [path_needed for path_needed in [*before, path] if path_needed not in order]
    return order


def build_initrd(
    kernel: tarfile.TarFile,
    release: str,
    wanted: Sequence[str],
    init: Path,
    patched: Mapping[str, bytes] = MappingProxyType({}),
) -> bytes:
    """The initrd: a static busybox, our `init`, and the few modules needed to see the root disk.

    It is an uncompressed cpio archive; `kernel` is the base of the kernel's stage. Modules in `patched`,
    by their path in the root, take the places of the kernel's.
    """
    folder = f"./usr/lib/modules/{release}"
    order = module_order(
        read_member(kernel, f"{folder}/modules.dep").decode(),
        read_member(kernel, f"{folder}/modules.builtin").decode(),
        wanted,
    )
    entries: dict[str, bytes | None] = dict.fromkeys(("bin", "modules"))
    entries["bin/busybox"] = read_member(kernel, "./busybox")
    entries["bin/sh"] = entries["bin/busybox"]
    for path in order:
        name = f"{folder}/{path}"
        own = patched.get(name.removeprefix("./")) or read_member(kernel, name)
        entries[f"modules/{Path(path).name}"] = own
    entries["modules/order"] = "".join(f"{Path(path).name}\n" for path in order).encode()
    entries["init"] = init.read_bytes()
    return cpio(entries)


def cpio(entries: Mapping[str, bytes | None]) -> bytes:
    """An archive in the "newc" format the kernel unpacks; `None` is a directory, files are 0755.

    Format: the kernel's Documentation/driver-api/early-userspace/buffer-format.rst.
    """
    archive = bytearray()
    for number, (name, content) in enumerate([*entries.items(), ("TRAILER!!!", b"")], start=1):
        mode = _DIRECTORY if content is None else _EXECUTABLE
        if name == "TRAILER!!!":
            mode = 0
        data = content or b""
        encoded = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        archive += _NEWC_MAGIC + b"".join(b"%08x" % field for field in fields)
        archive += encoded
        archive += bytes(-len(archive) % 4)
        archive += data
        archive += bytes(-len(archive) % 4)
    return bytes(archive)


def read_member(tar: tarfile.TarFile, name: str) -> bytes:
    """The content of one regular file of an archive."""
    try:
        stream = tar.extractfile(name)
    except KeyError:
        stream = None
    if stream is None:
        raise HarnessError(
            f"{tar.name!r} has no {name!r}", hint="delete that archive's folder and build again"
        )
    return stream.read()


def _module_name(path: str) -> str:
    return Path(path).name.split(".", 1)[0].replace("-", "_")
