"""Evidence by a share: there and back, and with the result where the share fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from torture.errors import HarnessError
from torture.trials.workers._evidence_share import EVIDENCE_VARIABLE, received, sent, share_of

PACKED = b"zip" * 100


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_evidence_goes_by_the_share_and_is_removed_there(scheme: str, tmp_path: Path) -> None:
    outcome = sent(PACKED, f"{scheme}{tmp_path}", "site-slot")
    assert outcome == {"place": f"{scheme}{tmp_path}/site-slot.zip"}
    assert (received(outcome), list(tmp_path.iterdir())) == (PACKED, [])


def test_without_a_share_it_goes_with_the_result() -> None:
    assert received(sent(PACKED, "", "site-slot")) == PACKED


def test_a_share_that_fails_costs_no_evidence_and_is_said(tmp_path: Path) -> None:
    (tmp_path / "share").touch()
    outcome = sent(PACKED, str(tmp_path / "share"), "site-slot")
    assert received(outcome) == PACKED
    assert outcome["detour"].startswith(f"{tmp_path}/share/site-slot.zip: ")


def test_a_campaign_does_not_begin_with_a_share_that_it_cannot_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(EVIDENCE_VARIABLE, raising=False)
    assert share_of("site") == ""
    monkeypatch.setenv(EVIDENCE_VARIABLE, str(tmp_path / "share"))
    assert share_of("site") == str(tmp_path / "share")
    assert list((tmp_path / "share").iterdir()) == []
    (tmp_path / "file").touch()
    monkeypatch.setenv(EVIDENCE_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(HarnessError, match=r"file/site\.probe"):
        share_of("site")
