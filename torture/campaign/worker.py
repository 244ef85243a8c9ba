"""A trial worker: a process in namespaces of its own that runs one trial after the other.

It speaks JSON lines: first its orders (`WorkerOrders.as_json`), then a spec at a time on standard
input; on standard output `{"stage": ...}`, `{"say": ...}`, and `{"record": ...}` for each spec, or
`{"refused": ...}` when it cannot work at all.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from torture.errors import HarnessError
from torture.host.accelerator import Accelerator
from torture.host.network_kind import NetworkKind
from torture.lab.lab import Boot, Lab, LabSettings
from torture.record.specs import TrialSpec
from torture.trial.live import run_trial


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerOrders:
    """Where a worker works and with what."""

    scratch: Path
    trials: Path
    lab: LabSettings

    def as_json(self) -> dict[str, Any]:
        """As plain data; `from_json` takes it back."""
        return {
            "scratch": str(self.scratch),
            "trials": str(self.trials),
            "boot": self.lab.boot,
            "accelerator": self.lab.accelerator,
            "network": self.lab.network,
            "libvirt_uri": self.lab.libvirt_uri,
            "zfs": self.lab.zfs,
            "warm_states": str(self.lab.warm_states),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The orders of `as_json`'s data."""
        return cls(
            scratch=Path(data["scratch"]),
            trials=Path(data["trials"]),
            lab=LabSettings(
                boot=Boot(data["boot"]),
                accelerator=data["accelerator"] and Accelerator(data["accelerator"]),
                network=data["network"] and NetworkKind(data["network"]),
                libvirt_uri=data["libvirt_uri"],
                zfs=data["zfs"],
                warm_states=Path(data["warm_states"]),
            ),
        )


class _Answers:
    """The way back to the controller; nothing else may write there."""

    def __init__(self) -> None:
        self._file: IO[str] = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)

    def send(self, **message: object) -> None:
        """One JSON line."""
        print(json.dumps(message), file=self._file, flush=True)


def main() -> int:
    """Work until standard input ends."""
    answers = _Answers()
    orders = WorkerOrders.from_json(json.loads(sys.stdin.readline()))
    orders.scratch.mkdir(parents=True, exist_ok=True)
    try:
        lab = Lab(orders.lab, say=lambda text: answers.send(say=text))
    except HarnessError as error:
        answers.send(refused=str(error))
        return 1
    answers.send(say="ready")
    for number, line in enumerate(sys.stdin):
        spec = TrialSpec.from_json(json.loads(line))
        record = run_trial(
            spec,
            lab=lab,
            folder=orders.trials / spec.trial,
            scratch=orders.scratch / f"t{number}",
            enter_stage=lambda stage: answers.send(stage=stage),
        )
        answers.send(record=record.as_json())
    return 0


if __name__ == "__main__":
    sys.exit(main())
