"""The steps of a search so far: a line of JSON each, so that an interrupted search goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from torture.errors import HarnessError
from torture.facts.stats.change_point import Tried


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """Some trials of a version, or the reason why there are none."""

    version: str
    trials: int = 0
    """Conclusive ones."""
    losses: int = 0
    """Trials that broke the cell's guarantee."""
    skipped: str = ""
    """The reason why this version cannot be tried; empty where it was."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Journal:
    """The file of a search. Its first line is the question."""

    file: Path

    def begin(self, question: Mapping[str, object]) -> None:
        """Begin it, or check that it is of the same question; raises `HarnessError` where it is not."""
        text = json.dumps(question, sort_keys=True)
        if not self.file.exists():
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._add(text)
            return
        earlier = self._lines()[0]
        if earlier != text:
            raise HarnessError(
                f"{self.file} is of another search: {earlier}",
                hint="name another folder with --state",
            )

    def steps(self) -> list[Step]:
        """All steps, in their order; a line that was cut off is left out."""
        return [Step(**json.loads(line)) for line in self._lines()[1:]]

    def add(self, step: Step) -> None:
        """Write down a step."""
        self._add(json.dumps(asdict(step)))

    def _lines(self) -> list[str]:
        """Those that were written whole."""
        text = self.file.read_text()
        return text[: text.rfind("\n") + 1].splitlines()

    def _add(self, line: str) -> None:
        whole = self.file.read_bytes() if self.file.exists() else b""
        with self.file.open("r+b" if whole else "wb") as file:
            file.truncate(whole.rfind(b"\n") + 1)
            file.seek(0, 2)
            file.write(line.encode() + b"\n")


def tried_of(steps: list[Step], version: str) -> Tried:
    """All trials of a version."""
    tried = Tried()
    for step in steps:
        if step.version == version:
            tried += Tried(trials=step.trials, losses=step.losses)
    return tried
