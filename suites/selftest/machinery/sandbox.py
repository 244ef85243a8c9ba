"""Running a scene with real machines in a sandbox of its own, from a test outside of it."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from torture.checkout import CHECKOUT
from torture.host.sandbox import sandboxed
from torture.lab.lab import Lab, LabSettings
from torture.lab.saved_states import warm_directory


def in_sandbox(scene: str, *, scratch: Path, deadline_s: float) -> Any:
    """What the scene `module:function` returned; it is called with a `Lab` and a scratch folder.

    Raises `AssertionError` with all it printed when it fails.
    """
    completed = subprocess.run(
        sandboxed((sys.executable, "-m", __name__, scene, str(scratch))),
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=deadline_s,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return json.loads(completed.stdout.splitlines()[-1])


def main(scene: str, scratch: Path) -> None:
    """Called in the sandbox: play the scene and print what it returned."""
    module, function = scene.split(":")
    lab = Lab(LabSettings(warm_states=warm_directory()), say=lambda _text: None)
    print(json.dumps(getattr(importlib.import_module(module), function)(lab, scratch)))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
