"""The blocks of OpenZFS's files that recoveries can run, and those that some have run (pure).

A block is a run of instructions without a branch, of a program that was compiled to note them
(gcc(1), `-fsanitize-coverage=trace-pc`). `vmimages/zfs/recovery/stage.sh` makes the table.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from mmap import mmap
from operator import itemgetter
from typing import Self

from torture.errors import HarnessError

_ROW = re.compile(r"([0-9a-f]{1,16})\t(\w+\.c):(\d+)\t(\w+)")
_DIGEST_CHARS = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A block of a program, and its place in the sources."""

    address: int
    """Behind the call by which the program notes it."""
    file: str
    line: int
    function: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Blocks:
    """All blocks of a program. A set of them is a number with a bit for each, the first one lowest."""

    blocks: tuple[Block, ...]
    digest: str
    """The same for the same table: sets of another table mean nothing here."""

    @classmethod
    def parse(cls, table: bytes) -> Self:
        """The blocks of a table; raises `HarnessError` for another text."""
        lines = table.decode(errors="replace").splitlines()
        rows = [_ROW.fullmatch(line) for line in lines]
        blocks = tuple(
            Block(address=int(row[1], 16), file=row[2], line=int(row[3]), function=row[4])
            for row in rows
            if row is not None
        )
        if len(blocks) < max(len(lines), 2) or not table.endswith(b"\n"):
            wrong = next((line for line, row in zip(lines, rows, strict=True) if row is None), "")
            raise HarnessError(f"the table of blocks is garbled or cut short: {wrong!r}")
        return cls(blocks=blocks, digest=hashlib.sha256(table).hexdigest()[:_DIGEST_CHARS])

    @property
    def of_notes(self) -> Callable[[bytes | mmap], int]:
        """The reader of a program's notes, a byte for each address; it returns the set.

        It raises `IndexError` for notes that are cut short.
        """
        picked = itemgetter(*(block.address for block in reversed(self.blocks)))

        def read(notes: bytes | mmap) -> int:
            return int("".join("1" if note else "0" for note in picked(notes)), 2)

        return read

    def read_set(self, text: str) -> int:
        """The set in a record, in hexadecimal; raises `HarnessError` for another text."""
        try:
            chosen = int(text, 16)
        except ValueError as error:
            raise HarnessError(f"no set of blocks: {error}") from error
        if not 0 <= chosen < 1 << len(self.blocks):
            raise HarnessError(f"a set of more than {len(self.blocks)} blocks")
        return chosen

    def has(self, chosen: int, place: int) -> bool:
        """Whether the block at this place of the table is in a set."""
        return bool(chosen >> place & 1)

    def by_file(self, chosen: int) -> dict[str, tuple[int, int]]:
        """Each file, its blocks, and those of them in a set."""
        counts: dict[str, tuple[int, int]] = {}
        for place, block in enumerate(self.blocks):
            known, ran = counts.get(block.file, (0, 0))
            counts[block.file] = (known + 1, ran + self.has(chosen, place))
        return counts

    def in_words(self, chosen: int) -> Iterator[str]:
        """The functions without a block in a set, and the lines that lack some, file by file."""
        places = sorted(
            range(len(self.blocks)),
            key=lambda place: (
                self.blocks[place].file,
                self.blocks[place].function,
                self.blocks[place].line,
            ),
        )
        counts = self.by_file(chosen)
        for file, of_file in groupby(places, lambda place: self.blocks[place].file):
            whole, partly = [], []
            for function, of_function in groupby(
                of_file, lambda place: self.blocks[place].function
            ):
                own = list(of_function)
                left = [place for place in own if not self.has(chosen, place)]
                lines = dict.fromkeys(str(self.blocks[place].line) for place in left)
                if len(left) == len(own):
                    whole.append(f"  {function}: {len(own)}")
                elif left:
                    partly.append(
                        f"  {function}: {len(own) - len(left)} of {len(own)}, "
                        f"not those of lines {' '.join(lines)}"
                    )
            yield f"{file}: {counts[file][1]} of {counts[file][0]} blocks were run"
            yield from (f"{file}: functions never run, with their blocks:", *whole)
            yield from (f"{file}: functions run in part:", *partly)
