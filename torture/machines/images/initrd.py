"""The initrd: it has the few modules that a guest needs to see its root disk. Needs no root."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from torture.errors import HarnessError

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
