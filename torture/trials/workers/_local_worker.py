"""The program of a worker of `local`: a process in its own namespaces, one trial after the other.

It speaks JSON lines. On standard input it reads its orders (`WorkerOrders.as_json`), then a spec at
a time. On standard output it writes `{"stage": ...}`, `{"say": ...}`, and `{"record": ...}` for
each spec. It writes `{"refused": ...}` when it cannot work at all.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import IO

from msgspec.structs import replace

from torture.errors import HarnessError
from torture.machines.host.native import shelf_plugin
from torture.machines.lab.lab import Lab
from torture.records.record.specs import TrialSpec
from torture.trials.trial.one_trial import run_trial
from torture.trials.workers._where import where_of
from torture.trials.workers.protocol import WorkerOrders


class _Answers:
    """The channel to the controller; nothing else may write to it."""

    def __init__(self) -> None:
        self._file: IO[str] = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)

    def send(self, **message: object) -> None:
        """Send one JSON line."""
        print(json.dumps(message), file=self._file, flush=True)


def _probe(lab: Lab, scratch: Path) -> None:
    """Show that a shelf can be had and that a machine starts; it is the first trials' checker.

    Raises `HarnessError` where one of them fails.
    """
    shelf_plugin()
    lab.checkers.keep(lab.checkers.take(console_log=scratch / "probe.console.log"))


def main() -> int:
    """Work until standard input ends."""
    answers = _Answers()
    orders = WorkerOrders.from_json(json.loads(sys.stdin.readline()))
    orders.scratch.mkdir(parents=True, exist_ok=True)
    try:
        lab = Lab(orders.lab, say=lambda text: answers.send(say=text))
        where_of(lab)  # refused now rather than after a trial
        if orders.probes:
            _probe(lab, orders.scratch)
    except HarnessError as error:
        answers.send(refused=str(error))
        return 1
    answers.send(say="ready")
    for number, line in enumerate(sys.stdin):
        spec = TrialSpec.from_json(json.loads(line))
        record = run_trial(
            spec,
            lab=lab,
            folder=orders.run.evidence_of(spec.trial),
            scratch=orders.scratch / f"t{number}",
            enter_stage=lambda stage: answers.send(stage=stage),
        )
        answers.send(record=replace(record, where=where_of(lab)).as_json())
    return 0


if __name__ == "__main__":
    sys.exit(main())
