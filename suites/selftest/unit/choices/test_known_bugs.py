"""Known bugs: two sides that differ by little, found on one of them, and counted as they were seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from fixtures.experiments import outcome_table, rows_of
from fixtures.trees import chosen_trees, zfs_of_side
from suites.knownbugs.conftest import patched_kernels
from suites.selftest.unit.made_records import changed, record_in
from torture.choices.experiments import FAULTS, KNOWN_BUGS, trees_needed
from torture.choices.experiments.protocol import FromSource, KnownBug, Side, Sight
from torture.choices.matrix.cell_terms import guarantee_of
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.facts.linux.kernels import Kernels
from torture.facts.stats.rates import rate_of
from torture.facts.zfs.versions import zfs_version
from torture.files import CHECKOUT
from torture.machines.images.source_trees import ChosenSource, PatchSeries, read_zfs_tree
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.trials import TrialRecord
from torture.records.scoring.detection import Detection, Outcome, detect

BUG = KNOWN_BUGS["zvol-preflush"]
BROKEN = CutDocument(audit=AuditDocument(broken=1))
QUIET = {"pool": Verdict.INTACT, "filesystem": Verdict.INTACT, "data": Verdict.INTACT}


def record(verdict: Verdict = Verdict.INTACT, **more: object) -> TrialRecord:
    cell = BUG.affected.chosen_cell
    made = record_in(cell, verdict, verdicts=dict(QUIET), zfs="2.3.1-0123456789ab")
    return changed(made, **more)


SOUND = record()
ACCUSED = record(cut=BROKEN)
LOST = record(
    Verdict.CORRUPTED, verdicts=QUIET | {"data": Verdict.CORRUPTED}, lost=3, acknowledged=9
)
UNKNOWN = record(Verdict.INCONCLUSIVE, verdicts={}, error="no NAS\n  next: look")


def outcome(
    affected: list[TrialRecord], cleared: list[TrialRecord], bug: KnownBug = BUG
) -> Outcome:
    return Outcome(
        experiment=bug,
        affected=detect(bug, affected),
        cleared=detect(bug, cleared, bug.cleared),
    )


def column(side: Detection) -> tuple[int, int, int]:
    return side.cuts, side.detected, side.inconclusive


@pytest.mark.parametrize("bug", KNOWN_BUGS.values(), ids=lambda bug: bug.name)
def test_a_bug_is_missing_where_all_is_sound_and_found_elsewhere(bug: KnownBug) -> None:
    assert guarantee_of(bug.cleared.chosen_cell) is Guarantee.SAFE
    affected, cleared = bug.affected, bug.cleared
    sides = [
        (side.chosen_cell, structs.replace(side, cell="", axes=())) for side in (affected, cleared)
    ]
    assert sides[0] != sides[1]
    for side in (affected, cleared):
        assert not (side.nas_patches and side.client_patches)
        for patch in (*side.nas_patches, *side.client_patches):
            assert PatchSeries.read([CHECKOUT / patch]).touched
        assert isinstance(side.zfs, FromSource) or zfs_version(side.zfs).name == side.zfs
    assert bug.cuts >= 1


def test_a_sides_patches_are_of_the_kernel_of_one_machine() -> None:
    plain = Side(cell="iscsi-standard-noslog-btrfs-bothdie")
    names = (
        "docs/reproducers/nfsd-xattr-commit.patch",
        "docs/reproducers/netfs-writethrough.patch",
    )
    nas = structs.replace(plain, nas_patches=names)
    client = structs.replace(plain, client_patches=names)
    patches, linux = patched_kernels(nas, "2.3.9")
    assert patches.touched == ("fs/netfs/write_issue.c", "fs/nfsd/vfs.c")
    assert linux == Kernels(nas=f"trixie+{patches.digest}", client="trixie")
    assert patched_kernels(client, "2.3.9")[1] == Kernels(client=f"trixie+{patches.digest}")
    assert patched_kernels(plain, "2.3.9") == (PatchSeries(), Kernels())


def test_a_side_takes_choices_as_the_command_line_does() -> None:
    plain = Side(cell="iscsi-standard-noslog-ext4-bothdie")
    assert plain.chosen_cell.name == plain.cell
    chosen = structs.replace(
        plain, axes=("zvol_use_blk_mq=blkmq", "logbias=throughput")
    ).chosen_cell
    assert chosen.axes["settings"] == "logbias=throughput+zfs.zvol_use_blk_mq=1"
    with pytest.raises(ValueError, match="administering"):
        _ = structs.replace(plain, axes=("administering=expand",)).chosen_cell


def test_every_tree_that_a_bug_needs_can_be_named() -> None:
    needed = {
        side.zfs
        for bug in KNOWN_BUGS.values()
        for side in (bug.affected, bug.cleared)
        if isinstance(side.zfs, FromSource)
    }
    assert set(trees_needed().values()) == needed, "two trees have one name"


def test_a_side_is_counted_by_the_findings_of_all_checks() -> None:
    side = detect(BUG, [SOUND, ACCUSED, LOST, UNKNOWN])
    assert column(side) == (3, 2, 1)
    assert (side.by[Sight.AUDIT], side.by[Sight.DATA], side.by[Sight.POOL]) == (1, 1, 0)
    assert (side.lost, side.errors) == (1, ("no NAS",))
    assert side.rate == rate_of(2, 3)
    assert side.zfs == "2.3.1-0123456789ab", "what ran, and not what was asked for"
    assert side.seen_in_words == "audit 1, data 1"


def test_a_bug_with_its_own_sign_is_distinguished_from_another() -> None:
    bug = KNOWN_BUGS["raidz-expansion-start"]
    gone = QUIET | {"pool": Verdict.POOL_LOST}
    of_it, other = (
        record(Verdict.POOL_LOST, verdicts=gone, reasons=(f"pool-import: {why}",), lost=2)
        for why in ("I/O error", "one or more devices is currently unavailable")
    )
    both = outcome([of_it, other, SOUND], [other, SOUND], bug)
    assert both.is_clear
    assert both.objection == "cleared of this, and a finding: something else 1"
    assert column(both.affected) == (3, 1, 0)
    assert both.affected.seen_in_words == "pool 1, something else 1"
    assert both.as_json()["cleared"]["otherwise"] == 1
    assert not outcome([of_it], [of_it], bug).is_clear
    assert outcome([other], [SOUND], bug).objection.startswith("not seen in 1 cuts")


def test_an_inconclusive_trial_counts_only_when_a_check_spoke() -> None:
    assert column(detect(BUG, [UNKNOWN] * 3, BUG.cleared)) == (0, 0, 3)
    accused = structs.replace(UNKNOWN, cut=BROKEN)
    assert column(detect(BUG, [accused, UNKNOWN], BUG.cleared)) == (1, 1, 2)


def test_a_side_that_never_ran_is_called_as_it_was_asked_for() -> None:
    assert detect(BUG, [structs.replace(UNKNOWN, zfs="")]).zfs == "2.3.1"
    assert detect(BUG, [], BUG.cleared).zfs == "2.3.2"


@pytest.mark.parametrize(
    ("affected", "cleared", "is_found", "is_clear"),
    [
        ([ACCUSED, SOUND], [SOUND], True, True),
        ([SOUND, SOUND], [SOUND], False, True),
        ([UNKNOWN], [SOUND], False, True),
        ([LOST], [SOUND, ACCUSED], True, False),
        ([LOST], [LOST], True, False),
        ([LOST], [UNKNOWN], True, False),
        ([LOST], [], True, False),
        ([LOST], [SOUND, UNKNOWN], True, True),
    ],
)
def test_a_bug_has_to_be_found_on_one_side_and_never_on_the_other(
    affected: list[TrialRecord], cleared: list[TrialRecord], *, is_found: bool, is_clear: bool
) -> None:
    judged = outcome(affected, cleared)
    assert (judged.affected.detected > 0, judged.is_clear) == (is_found, is_clear)
    assert (judged.objection == "") is (is_found and is_clear and judged.affected.is_as_predicted)


def test_a_prediction_holds_while_the_interval_allows_it() -> None:
    assert detect(BUG, [ACCUSED] * 3).is_as_predicted
    assert not detect(BUG, [LOST] * 3).is_as_predicted, "another check saw it"
    assert not detect(BUG, [ACCUSED, *[SOUND] * 9]).is_as_predicted, "1 in 10 is not every one"
    assert detect(structs.replace(BUG, cuts=40), [ACCUSED, *[SOUND] * 9]).is_as_predicted


def test_the_silence_of_the_cleared_side_says_so_much_and_no_more() -> None:
    low = rate_of(5, 5).low
    silent = outcome([ACCUSED] * 5, [SOUND, SOUND, UNKNOWN, SOUND])
    assert silent.share_of_silence == pytest.approx(1 - (1 - low) ** 3)
    assert silent.silence_in_words == f"at least {int(100 * silent.share_of_silence)} %"
    assert outcome([ACCUSED], [SOUND]).silence_in_words == "at least 2 %"
    assert outcome([SOUND], [SOUND] * 99).silence_in_words == "at least 0 %"
    assert outcome([ACCUSED] * 9, [SOUND] * 9).silence_in_words == "more than 99 %"


def test_the_table_has_both_sides_and_names_wrong_predictions() -> None:
    judged = outcome([ACCUSED, LOST, UNKNOWN], [SOUND, SOUND])
    affected, cleared = rows_of(judged)
    assert (affected["experiment"], affected["side"]) == (BUG.words, "affected")
    assert affected["OpenZFS"] == "2.3.1-0123456789ab"
    assert affected["detected [95 %]"].startswith("2 of 2 [")
    assert affected["detected [95 %]"].endswith("(and 1 inconclusive)")
    assert (affected["seen by"], affected["lost"]) == ("audit 1, data 1", "1 of 2")
    assert affected["predicted"] == "audit, 1"
    assert cleared["experiment"] == BUG.source
    assert cleared["detected [95 %]"].startswith("0 of 2 [0-")
    assert (cleared["seen by"], cleared["predicted"]) == ("nothing", "nothing")
    assert next(rows_of(outcome([LOST], [SOUND])))["predicted"].endswith("(not so)")
    table = outcome_table([judged, judged])
    assert table.row_count == 4
    assert not {"layer", "lost where confirmed"} & {column.header for column in table.columns}


def test_a_planted_fault_has_one_row_and_its_layer() -> None:
    fault = FAULTS["flush-dropped"]
    judged = Outcome(experiment=fault, affected=detect(fault, [ACCUSED]))
    (row,) = rows_of(judged)
    assert (row["experiment"], row["layer"], row["side"]) == (fault.words, fault.layer, "")
    assert judged.as_json()["name"] == fault.name


def test_the_kept_figures_have_both_sides_with_their_intervals() -> None:
    kept = outcome([ACCUSED] * 6, [SOUND] * 6).as_json()
    assert kept["low"] == rate_of(6, 6).low
    assert kept["cleared"]["high"] == rate_of(0, 6).high
    assert (kept["predicted_by"], kept["predicted_cuts"]) == ("audit", 1)


def test_a_side_without_its_tree_names_the_next_command() -> None:
    assert zfs_of_side(BUG.cleared, {}) == ChosenSource(version="2.3.2")
    lack = zfs_of_side(BUG.affected, {})
    assert isinstance(lack, str)
    assert "git clone --branch zfs-2.3.1" in lack
    assert "--tree 2.3.1=" in lack
    had = ChosenSource(version="2.3.1-0123456789ab")
    assert zfs_of_side(BUG.affected, {"2.3.1": had}) == had


def test_a_tree_is_given_by_the_name_that_a_bug_knows_it_by(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pytestconfig.option, "tree", ["2.3.1=2.3.1-0123456789ab"])
    assert chosen_trees(pytestconfig) == {"2.3.1": ChosenSource(version="2.3.1-0123456789ab")}
    (tmp_path / "contrib" / "debian").mkdir(parents=True)
    (tmp_path / "contrib" / "debian" / "rules.in").touch()
    (tmp_path / "META").write_text("Name: zfs\nVersion: 2.3.1\n")
    monkeypatch.setattr(pytestconfig.option, "tree", [f"2.3.1={tmp_path}"])
    assert chosen_trees(pytestconfig)["2.3.1"].tree == read_zfs_tree(tmp_path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2.3.1", "write NAME=PATH"),
        ("2.9.9=there", "2.3.1.* as the name"),
        ("2.3.1=/nowhere", "there is no folder /nowhere; known are: "),
    ],
)
def test_an_unneeded_or_missing_tree_is_refused(
    text: str, why: str, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytestconfig.option, "tree", [text])
    with pytest.raises(pytest.UsageError, match=why):
        chosen_trees(pytestconfig)
