"""An image by its content. Standard library only.

An image's key is a hash of its recipe and of the names of its packages. Hosts that build on different
days may have other versions of these under the same key; the digest of the content tells them apart.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from torture.files import write_whole

ROOT, KERNEL, INITRD = "root.sqfs", "vmlinuz", "initrd"
MANIFEST = "manifest.json"
"""The versions of the packages in the root."""
DIGEST = "sha256"
"""The file that keeps the digest."""
_CONTENT = tuple(sorted((ROOT, KERNEL, INITRD)))


def content_digest(folder: Path) -> str:
    """The SHA-256 of an image's content; kept in its folder once it was computed.

    In the folder, `sha256sum initrd root.sqfs vmlinuz | sha256sum` prints the same.
    """
    file = folder / DIGEST
    if file.exists():
        return file.read_text().strip()
    digest = computed_digest(folder)
    with suppress(OSError):  # a cache built by another user is good to read
        write_whole(file, f"{digest}\n".encode())
    return digest


def computed_digest(folder: Path) -> str:
    """The same, from the files as they are now. Raises `OSError`."""
    lines = []
    for name in _CONTENT:
        with (folder / name).open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()
