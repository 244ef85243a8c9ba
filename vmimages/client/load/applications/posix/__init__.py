"""Operations of filesystems beside file writes: names, links, sizes, holes, attributes, and syncs.

Each writer has a tree of directories of its own. A transaction's `what` announces its verb (`do`),
its objects, and the `syncs` that follow, each as [call, whom]. Directories, files and symbolic
links of all writers get a number as they are made, which is never reused; `whom` is this number.
The writers' own directories are the first. `torture/oracles/verdict/trees` defines the possible
results of a crash.
"""

from __future__ import annotations

import json
import os

from .. import Application
from .chains import Chains
from .drawing import Drawing
from .looking import found_below
from .performing import Performing, supported_in

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any

    from .. import Performer, TransactionPlanner

_SUPPORTED = "supported.json"


class Posix(Application):
    """Its trees are directories of one directory, which are there before the load."""

    def prepare(self) -> None:
        """Make a directory for each writer, and test once for all seeds which verbs are supported."""
        os.mkdir(self.directory)  # noqa: PTH102 - pathlib is slow to import
        for writer in range(self.job["writers"]):
            os.mkdir(f"{self.directory}/{writer}")  # noqa: PTH102
        with open(f"{self.directory}/{_SUPPORTED}", "w") as file:  # noqa: PTH123
            json.dump(supported_in(self.directory), file)

    def begin(self) -> None:
        """Read the result of that test."""
        with open(f"{self.directory}/{_SUPPORTED}") as file:  # noqa: PTH123
            self._supported = frozenset(json.load(file))

    def planner(self, writer: int) -> TransactionPlanner:
        """Draws among the supported verbs: single operations, or with the setting `chains` chains."""
        kind = Chains if "chains" in self.job else Drawing
        return kind(self.job, writer, self._supported)

    def performer(self, writer: int) -> Performer:
        """Keeps its writer's files open."""
        return Performing(self.job["trial"], f"{self.directory}/{writer}", writer)

    def read(self) -> dict[str, Any]:
        """Everything that is there, by directory."""
        roots = [f"{self.directory}/{writer}" for writer in range(self.job["writers"])]
        return {"trees": [found_below(root, trial=self.job["trial"]) for root in roots]}


APPLICATION = Posix
