"""How the tests are dealt out to several processes; loaded only where pytest-xdist is."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

from suites.selftest.tiers import together_with


class TierScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Scenes with machines fill one process, the others work off the rest file by file."""

    def _split_scope(self, nodeid: str) -> str:
        """The unit for one process: a folder that stays together, else a file's tests."""
        file: str = nodeid.partition("::")[0]
        return together_with(self.config.rootpath / file) or file
