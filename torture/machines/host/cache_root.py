"""The place for expensive results that outlive a run: images, saved states, native builds."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "TORTURE_CACHE"


def cache_root() -> Path:
    """`$TORTURE_CACHE`, else `powercut-torture` in the user's cache folder."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "powercut-torture"


def own_cache_root() -> Path:
    """The same folder, or the user's own cache when another user owns that folder."""
    root = cache_root()
    if root.exists() and not os.access(root, os.W_OK):
        return Path.home() / ".cache" / "powercut-torture"
    return root
