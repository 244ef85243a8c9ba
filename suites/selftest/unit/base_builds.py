"""The build of a base with a stand-in for mmdebstrap, in `made` below a test's folder; its archives."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any

from torture.machines.images import bases
from torture.machines.images.recipes import Recipe


def build_in(
    folder: Path, recipe: Recipe, *, stop: Event | None = None, **brought: Any
) -> list[str]:
    """Build it, with a tree or with patches that a user has brought; returns what it said."""
    said: list[str] = []
    work = folder / "made"
    work.mkdir(exist_ok=True)
    with (folder / "keep").open("w") as keep:
        bases.build_base(
            recipe,
            work,
            log=folder / "log",
            progress=said.append,
            stop=stop or Event(),
            keep=keep.fileno(),
            compiled=folder / "compiled.tar",
            **brought,
        )
    return said


def archive_of(path: Path, files: Mapping[str, bytes], **links: tuple[bytes, str]) -> Path:
    """An archive of these files, and of links, each with its type and its target."""
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for name, (type_, target) in links.items():
            info = tarfile.TarInfo(f"./{name}")
            info.type, info.linkname = type_, target
            tar.addfile(info)
    return path
