"""What filesystems do beside writing files: names, links, sizes, holes, attributes, each with its sync.

Each writer has a tree of directories of its own. What a transaction does is announced in `what`: its
verb (`do`), what it is done to, and the `syncs` that follow, each as [call, whom]. Whom: a number
that directories, files and symbolic links of all writers are given as they are made, and never again; the
writers' own directories are the first. What a crash may leave is `torture/oracles/verdict/trees`.
"""

from __future__ import annotations

import json
import os

from .. import Application
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
        """A directory for each writer; and what this filesystem can do is tried, once for all seeds."""
        os.mkdir(self.directory)  # noqa: PTH102 - pathlib is slow to import
        for writer in range(self.job["writers"]):
            os.mkdir(f"{self.directory}/{writer}")  # noqa: PTH102
        with open(f"{self.directory}/{_SUPPORTED}", "w") as file:  # noqa: PTH123
            json.dump(supported_in(self.directory), file)

    def begin(self) -> None:
        """What was found out then."""
        with open(f"{self.directory}/{_SUPPORTED}") as file:  # noqa: PTH123
            self._supported = frozenset(json.load(file))

    def planner(self, writer: int) -> TransactionPlanner:
        """What this filesystem can do, drawn."""
        return Drawing(self.job, writer, self._supported)

    def performer(self, writer: int) -> Performer:
        """It keeps open what its writer works on."""
        return Performing(self.job["trial"], f"{self.directory}/{writer}", writer)

    def read(self) -> dict[str, Any]:
        """All that is there, by directory."""
        roots = [f"{self.directory}/{writer}" for writer in range(self.job["writers"])]
        return {"trees": [found_below(root, trial=self.job["trial"]) for root in roots]}


APPLICATION = Posix
