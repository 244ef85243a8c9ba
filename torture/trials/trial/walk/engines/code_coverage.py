"""The blocks of OpenZFS's library that the recoveries of a walk have run."""

from __future__ import annotations

import mmap
from pathlib import Path

from torture.errors import HarnessError
from torture.facts.evidence.walk_document import FileCoverage, WalkCoverage
from torture.facts.zfs.blocks import Blocks


class Coverage:
    """Counts them, of all processes with this program.

    `notes` is the file in which the program notes a byte for each address (`coverage.c`).
    """

    def __init__(self, blocks: Blocks, notes: Path) -> None:
        self._blocks = blocks
        self._read = blocks.of_notes
        self.notes = notes.absolute()
        self.ran = 0
        """The set of blocks, as `Blocks` has it."""
        self.reached_new = 0
        """The recoveries that ran a block which none before them had run."""

    def update(self) -> None:
        """Count the blocks of the recovery that has just ended. Raises `HarnessError`."""
        try:
            with (
                self.notes.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as notes,
            ):
                ran = self._read(notes)
        except (OSError, ValueError, IndexError) as error:
            raise HarnessError(
                f"{self.notes} does not have the program's notes: {error}"
            ) from error
        self.reached_new += ran & ~self.ran != 0
        self.ran |= ran

    @property
    def document(self) -> WalkCoverage:
        """The counts, for `walk.json`."""
        return WalkCoverage(
            table=self._blocks.digest,
            ran=f"{self.ran:x}",
            reached_new=self.reached_new,
            files={
                file: FileCoverage(blocks=known, ran=ran)
                for file, (known, ran) in self._blocks.by_file(self.ran).items()
            },
        )
