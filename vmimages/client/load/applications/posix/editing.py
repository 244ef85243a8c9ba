"""Edits of one file: its content, its length, its attributes."""

from __future__ import annotations

from ...plan import Dice

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any

SECTORS_OF_A_BLOCK = 8
SECTORS_MAX = 48
"""The length of a file made by writes next to its present content."""
_FAR_SECTORS_MAX = 2048
_MODES = (0o600, 0o640, 0o644, 0o700, 0o755, 0o666)
_TIME_MAX_S = 1_500_000_000
EDITS = frozenset(
    {
        "write", "direct", "dsync", "osync", "mmap", "sparse", "truncate", "punch", "zero", "xattr",
        "chmod", "utimens",
    }
)  # fmt: skip
"""The verbs, each a method of `Edits`."""

Entry = tuple[int, str]


class File:
    """A file as it is once all drawn transactions are done."""

    __slots__ = ("data", "names", "number", "sectors", "xattrs")

    def __init__(self, number: int, at: Entry, sectors: int) -> None:
        self.number = number
        self.names = [at]
        self.sectors = sectors
        self.data = set(range(sectors))
        """The sectors that were written and not zeroed since."""
        self.xattrs: set[str] = set()


class Edits:
    """Each edit returns `what`, or None where it would change nothing."""

    def __init__(self, dice: Dice) -> None:
        self._below = dice.below

    def _written(
        self, file: File, how: str, runs: list[list[int]], syncs: list[str]
    ) -> dict[str, Any]:
        file.sectors = max(file.sectors, *(first + count for first, count in runs))
        for first, count in runs:
            file.data.update(range(first, first + count))
        return {
            "do": "write", "how": how, "whom": file.number, "runs": runs,
            "syncs": [[sync, file.number] for sync in syncs],
        }  # fmt: skip

    def _run(self, file: File, *, within: bool = False) -> list[int]:
        end = file.sectors if within else min(SECTORS_MAX, file.sectors + SECTORS_OF_A_BLOCK)
        first = self._below(end)
        return [first, 1 + self._below(min(2 * SECTORS_OF_A_BLOCK, max(1, end - first)))]

    def _sync(self) -> str:
        return ("fsync", "fdatasync")[self._below(2)]

    def write(self, file: File) -> dict[str, Any]:
        """Write through the page cache, anywhere up to a little beyond its end."""
        return self._written(
            file, "buffered", [self._run(file) for _ in range(1 + self._below(2))], [self._sync()]
        )

    def direct(self, file: File) -> dict[str, Any]:
        """Write past the page cache: whole blocks."""
        first = self._below(SECTORS_MAX // SECTORS_OF_A_BLOCK) * SECTORS_OF_A_BLOCK
        return self._written(file, "direct", [[first, SECTORS_OF_A_BLOCK]], ["fdatasync"])

    def dsync(self, file: File) -> dict[str, Any]:
        """Write through O_DSYNC."""
        return self._written(file, "dsync", [self._run(file)], [])

    def osync(self, file: File) -> dict[str, Any]:
        """Write through O_SYNC."""
        return self._written(file, "osync", [self._run(file)], [])

    def mmap(self, file: File) -> dict[str, Any]:
        """Write into a mapping, then msync."""
        first, count = self._run(file, within=True)
        return self._written(file, "mmap", [[first, min(count, file.sectors - first)]], [])

    def sparse(self, file: File) -> dict[str, Any]:
        """Write far beyond its end."""
        first = file.sectors + self._below(_FAR_SECTORS_MAX)
        if first > _FAR_SECTORS_MAX:
            first = self._run(file)[0]
        return self._written(file, "buffered", [[first, 1 + self._below(4)]], [self._sync()])

    def truncate(self, file: File) -> dict[str, Any] | None:
        """Set another length, longer or shorter."""
        sectors = 1 + self._below(SECTORS_MAX)
        if sectors == file.sectors:
            return None
        file.sectors = sectors
        file.data = {sector for sector in file.data if sector < sectors}
        return {
            "do": "truncate", "whom": file.number, "sectors": file.sectors,
            "syncs": [[self._sync(), file.number]],
        }  # fmt: skip

    def punch(self, file: File) -> dict[str, Any] | None:
        """Punch a hole."""
        return self._zeroed("punch", file)

    def zero(self, file: File) -> dict[str, Any] | None:
        """Zero a range."""
        return self._zeroed("zero", file)

    def _zeroed(self, verb: str, file: File) -> dict[str, Any] | None:
        """Zero from existing data on, so that its sync has work to do."""
        there = sorted(file.data - {0})
        if not there:
            return None
        first = there[self._below(len(there))]
        count = min(1 + self._below(2 * SECTORS_OF_A_BLOCK), file.sectors - first)
        file.data.difference_update(range(first, first + count))
        return {
            "do": verb, "whom": file.number, "run": [first, count],
            "syncs": [[self._sync(), file.number]],
        }  # fmt: skip

    def xattr(self, file: File) -> dict[str, Any]:
        """Set or remove an attribute."""
        name = f"user.{'ab'[self._below(2)]}"
        value = None
        if name in file.xattrs and self._below(3) == 0:
            file.xattrs.discard(name)
        else:
            file.xattrs.add(name)
            value = f"{file.number}.{self._below(1 << 30)}"
        return self._of("xattr", file, name=name, value=value)

    def chmod(self, file: File) -> dict[str, Any]:
        """Set another mode."""
        return self._of("chmod", file, mode=_MODES[self._below(len(_MODES))])

    def utimens(self, file: File) -> dict[str, Any]:
        """Set another time of modification."""
        return self._of("utimens", file, mtime=1 + self._below(_TIME_MAX_S))

    @staticmethod
    def _of(verb: str, file: File, **more: object) -> dict[str, Any]:
        return {"do": verb, "whom": file.number, **more, "syncs": [["fsync", file.number]]}
