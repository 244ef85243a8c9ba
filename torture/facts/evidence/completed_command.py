"""A command that was run in a guest, as its caller sees it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath


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
