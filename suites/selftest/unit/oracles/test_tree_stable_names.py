"""Names that are durable once their call returned (`torture.choices.transports.protocol.Traits`)."""

from __future__ import annotations

import pytest

from suites.selftest.unit.oracles.tree_ledgers import (
    CHMOD,
    CREATE,
    LINK,
    MKDIR,
    RENAME,
    RMDIR,
    START,
    SYMLINK,
    UNLINK,
    What,
    judged,
    ledger_of,
    left_by,
)
from torture.facts.evidence.ledger import Begin, Done
from torture.oracles.verdict.verdicts import Verdict


@pytest.mark.parametrize("what", [CREATE, MKDIR, RMDIR, SYMLINK, LINK, UNLINK, RENAME])
def test_where_names_are_stable_one_is_there_without_a_sync(what: What) -> None:
    """As over NFS, whose server answers once it is (`torture.choices.transports.protocol.Traits`)."""
    for is_stable in (True, False):
        changed = what | ({"names_are_stable": True} if is_stable else {})
        events = ledger_of(*START, changed, CHMOD)
        forgotten = [one for one in events if not (isinstance(one, (Begin, Done)) and one.seq == 7)]
        findings = judged(events, left_by(forgotten))
        assert (findings.verdict is not Verdict.INTACT) is is_stable
        assert (findings.lost > 0) is is_stable
        assert judged(events, left_by(events)).verdict is Verdict.INTACT


def test_the_content_of_a_file_waits_for_a_sync_where_its_name_does_not() -> None:
    events = ledger_of(*START, CREATE | {"names_are_stable": True})
    trees = left_by(events)
    made = trees[0]["entries"]["d6"]["entries"]["d8"]["entries"]["f12"]
    made |= {"size": 0, "runs": []}
    assert judged(events, trees).verdict is Verdict.INTACT


@pytest.mark.parametrize(
    ("mode", "verdict"), [(0, "intact"), (0o644, "intact"), (0o600, "corrupted")]
)
def test_a_file_that_is_being_made_over_nfs_may_have_no_mode_yet(mode: int, verdict: str) -> None:
    whole = ledger_of(*START, CREATE | {"names_are_stable": True})
    for events, expected in ((whole[:-1], verdict), (whole, verdict if mode else "rolled-back")):
        trees = left_by(events)
        trees[0]["entries"]["d6"]["entries"]["d8"]["entries"]["f12"] |= {
            "mode": mode, "size": 0, "runs": [],
        }  # fmt: skip
        assert judged(events, trees).verdict == expected
