"""How the tests are dealt out to several processes; loaded only where pytest-xdist is."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

from suites.selftest.tiers import tier_of


class TierScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Machines beside everything else: their tests fill one process, the others work off the rest."""

    def _split_scope(self, nodeid: str) -> str:
        """What goes to one process as a whole: a tier that stays together, else a file's tests."""
        file: str = nodeid.partition("::")[0]
        tier = tier_of(self.config.rootpath / file)
        return tier if tier is not None and tier.stays_together else file
