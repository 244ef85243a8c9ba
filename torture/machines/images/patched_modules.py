"""Modules that were built again with patches: they take the places of the kernel's own."""

from __future__ import annotations

import tarfile
from collections.abc import Set
from pathlib import Path

from torture.errors import HarnessError

_MODULES = "usr/lib/modules"
_HINT = "tools/images build --fresh"


def patched_modules(archive: Path, *, release: str, known: Set[str]) -> dict[str, bytes]:
    """Path in the root to content, of the modules in the archive of `vmimages/linux/patched.sh`.

    `known` are the paths of the kernel's modules. Raises `HarnessError` where the modules are of another
    release than the kernel, or where it has none of a name.
    """
    found: dict[str, bytes] = {}
    with tarfile.open(archive) as tar:
        for info in tar:
            name = info.name.removeprefix("./")
            content = tar.extractfile(info) if info.isreg() else None
            if content is None or not name.startswith(f"{_MODULES}/"):
                continue
            if not name.startswith(f"{_MODULES}/{release}/"):
                raise HarnessError(f"{name} is not of the kernel {release}", hint=_HINT)
            if name not in known:
                raise HarnessError(f"the kernel {release} has no {name}", hint=_HINT)
            found[name] = content.read()
    if not found:
        raise HarnessError(f"{archive} has no module", hint="read the log of its build")
    return found
