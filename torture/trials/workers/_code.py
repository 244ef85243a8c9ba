"""The code of this checkout as a digest: all hosts of a campaign must run the same."""

from __future__ import annotations

import hashlib
from pathlib import Path

from torture.checkout import CHECKOUT

_SUFFIXES = frozenset({".py", ".cpp", ".hpp", ".h", ".c", ".sh", ".toml"})


def code_digest(checkout: Path = CHECKOUT) -> str:
    """The SHA-256 of the engine's files, and of the recipes of the images and of ZFS's versions."""
    digest = hashlib.sha256()
    for folder in ("torture", "vmimages"):
        for path in sorted((checkout / folder).rglob("*")):
            if path.suffix in _SUFFIXES and path.is_file():
                content = path.read_bytes()
                digest.update(f"{path.relative_to(checkout)} {len(content)}\0".encode())
                digest.update(content)
    return digest.hexdigest()


LOADED = code_digest()
"""Of the files at the time when this process loaded its code."""
