"""The writer of a trial's evidence: tool lines, documents, and the time that each stage took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torture.facts.evidence.completed_command import Completed
from torture.facts.evidence.folder import Step, ToolOutput, append_tool, write_document
from torture.machines.lab.machine import Machine
from torture.trials.trial.shared.storage import must_have_ended


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceWriter:
    """Writes into one trial's folder."""

    folder: Path
    enter_stage: Callable[[str], None] = lambda _stage: None
    """Shows the new stage in the live line."""
    require_host: Callable[[], None] = lambda: None
    """Raises `HarnessError` once the host ended a machine: what others show then is no evidence."""
    timings: dict[str, int] = field(default_factory=dict)
    """Milliseconds of each stage so far."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage; the live line and the record's timings have its name."""
        self.enter_stage(name)
        begun = time.monotonic()
        try:
            yield
        finally:
            self.timings[name] = round((time.monotonic() - begun) * 1000)

    def observe(
        self, machine: Machine, step: Step, argv: tuple[str, ...], *, deadline_s: float
    ) -> Completed:
        """Run a tool in a guest and keep all its output as evidence of `step`."""
        completed = machine.run(*argv, deadline_s=deadline_s)
        self.keep(step, completed)
        return completed

    def observe_to_end(
        self, machine: Machine, step: Step, argv: tuple[str, ...], *, deadline_s: float
    ) -> Completed:
        """Run a tool that needs the storage, with its output as evidence of `step`.

        Raises `StorageFailed` when it does not end.
        """
        completed = self.observe(machine, step, argv, deadline_s=deadline_s)
        must_have_ended(machine, step, completed, deadline_s=deadline_s)
        return completed

    def keep(self, step: Step, completed: Completed) -> None:
        """Keep all output of a tool as evidence of `step`; raises what `require_host` raises."""
        self.require_host()
        append_tool(self.folder, ToolOutput(step=step, name=completed.tool, **asdict(completed)))

    def write(self, name: str, content: dict[str, Any] | str) -> None:
        """Write a whole document, which replaces an earlier one; raises what `require_host` raises."""
        self.require_host()
        write_document(self.folder, name, content)
