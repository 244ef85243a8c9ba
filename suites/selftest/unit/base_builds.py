"""The build of a base with a stand-in for mmdebstrap, in `made` below a test's folder."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

from torture.machines.images import bases
from torture.machines.images.recipes import Recipe


def build_in(folder: Path, recipe: Recipe, **brought: Any) -> None:
    """Build it, with a tree or with patches that a user has brought."""
    work = folder / "made"
    work.mkdir()
    with (folder / "keep").open("w") as keep:
        bases.build_base(
            recipe,
            work,
            log=folder / "log",
            progress=print,
            stop=Event(),
            keep=keep.fileno(),
            compiled=folder / "compiled.tar",
            **brought,
        )
