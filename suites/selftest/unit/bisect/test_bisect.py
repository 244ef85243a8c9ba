"""A search for the first version that loses: its versions, its steps, and the images that one builds."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from torture.errors import HarnessError
from torture.features.bisect import asked_search
from torture.features.bisect.asked_search import SuiteTrier
from torture.features.bisect.change_point import (
    Tried,
    credible,
    differ_p,
    first_probabilities,
    lossy_probability,
    to_try_next,
    unlikeness,
)
from torture.features.bisect.search import (
    TRIALS_MAX,
    CommitVersions,
    Found,
    Journal,
    PackagedVersions,
    Search,
    Step,
    packaged_between,
)


def _git(folder: Path, *arguments: str) -> str:
    author = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ("git", "-C", folder, *author, *arguments), check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def _commit(tree: Path, number: int, *, file: str = "module.c") -> str:
    (tree / file).write_text(f"{number}\n")
    _git(tree, "add", file)
    _git(tree, "commit", "--quiet", "--message", f"change {number}")
    return _git(tree, "rev-parse", "HEAD")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "zfs"
    folder.mkdir()
    _git(folder, "init", "--quiet", "--initial-branch=master")
    return folder


def test_commits_lie_between_the_ends_and_are_checked_out(tree: Path, tmp_path: Path) -> None:
    commits = [_commit(tree, number) for number in range(6)]
    (tmp_path / "clone.part" / ".git").mkdir(parents=True)  # an interrupted one
    versions = CommitVersions.between(tree, good=commits[1], bad="HEAD", clone=tmp_path / "clone")
    assert list(versions.names) == commits[1:]
    assert not versions.is_of_a_fix
    for number in (2, 0, 4):
        (tmp_path / "clone" / "built.o").write_text("left by a build")
        folder = Path(versions.choice(number))
        assert (folder / "module.c").read_text() == f"{number + 1}\n"
        assert not (folder / "built.o").exists()
    assert versions.words(0).endswith("change 1")
    assert _git(tree, "status", "--porcelain", "--branch") == "## master"
    assert _git(tree, "worktree", "list").count("\n") == 0


def test_a_newer_good_one_is_a_search_for_the_fix(tree: Path, tmp_path: Path) -> None:
    commits = [_commit(tree, number) for number in range(4)]
    versions = CommitVersions.between(
        tree, good=commits[3], bad=commits[0], clone=tmp_path / "clone"
    )
    assert list(versions.names) == commits[::-1]
    assert versions.is_of_a_fix


def test_only_commits_of_a_part_of_the_tree_are_candidates(tree: Path, tmp_path: Path) -> None:
    commits = [
        _commit(tree, number, file=file)
        for number, file in enumerate(("module.c", "README", "module.c", "README", "README"))
    ]
    versions = CommitVersions.between(
        tree, good=commits[0], bad=commits[4], clone=tmp_path / "clone", paths=["module.c"]
    )
    assert list(versions.names) == [commits[0], commits[2], commits[4]]


def test_a_merge_is_one_commit(tree: Path, tmp_path: Path) -> None:
    first = _commit(tree, 0)
    _git(tree, "checkout", "--quiet", "-b", "side")
    _commit(tree, 1, file="side.c")
    _git(tree, "checkout", "--quiet", "master")
    second = _commit(tree, 2)
    _git(tree, "merge", "--quiet", "--no-edit", "side")
    merge = _git(tree, "rev-parse", "HEAD")
    versions = CommitVersions.between(tree, good=first, bad="master", clone=tmp_path / "clone")
    assert list(versions.names) == [first, second, merge]


def test_ends_that_are_no_line_are_refused(tree: Path, tmp_path: Path) -> None:
    first = _commit(tree, 0)
    second = _commit(tree, 1)
    _git(tree, "checkout", "--quiet", "-b", "side", first)
    side = _commit(tree, 2)
    with pytest.raises(HarnessError, match="ancestor"):
        CommitVersions.between(tree, good=second, bad=side, clone=tmp_path / "clone")
    with pytest.raises(HarnessError, match="rev-parse"):
        CommitVersions.between(tree, good="nothing", bad=side, clone=tmp_path / "clone")


def test_packaged_versions_are_in_the_order_of_their_numbers() -> None:
    assert packaged_between("zfs", good="2.1.11", bad="2.4.4").names == (
        "2.1.11", "2.3.2", "2.3.9", "2.4.4",
    )  # fmt: skip
    back = packaged_between("linux-client", good="trixie-backports", bad="bookworm")
    assert back.names == ("trixie-backports", "trixie", "bookworm-backports", "bookworm")
    assert back.is_of_a_fix
    with pytest.raises(HarnessError, match=r"no version 9\.9"):
        packaged_between("zfs", good="9.9", bad="2.4.4")
    with pytest.raises(HarnessError, match="both ends"):
        packaged_between("zfs", good="2.4.4", bad="2.4.4")


# A search on versions of which the truth is known: it finds the first one, and goes on when
# stopped.

_BATCH = 4
_COUNT = 33


class StopError(Exception):
    """The search is interrupted."""


@dataclass
class Truth:
    """Versions from the `first` of which on a trial loses with the probability `share`."""

    first: int
    share: float = 1.0
    share_before: float = 0.0
    mended: range = range(0)
    """Versions after the first that have its fix."""
    unbuilt: frozenset[int] = frozenset()
    stops_after: int = 10_000
    seed: int = 1
    asked: Counter[int] = field(default_factory=Counter)

    def try_version(self, number: int, *, batch: int) -> Step:
        if self.asked.total() >= self.stops_after:
            raise StopError
        self.asked[number] += 1
        if number in self.unbuilt:
            return Step(version=f"v{number}", skipped="does not build")
        dice = random.Random(f"{self.seed} {number} {batch}")
        has_bug = number >= self.first and number not in self.mended
        share = self.share if has_bug else self.share_before
        losses = sum(dice.random() < share for _ in range(_BATCH))
        return Step(version=f"v{number}", trials=_BATCH, losses=losses)


@pytest.fixture
def search(tmp_path: Path) -> Callable[[Truth], Found]:
    folders: Iterator[int] = iter(range(1000))

    def run(truth: Truth, *, file: Path | None = None) -> Found:
        journal = Journal(file=file or tmp_path / f"{next(folders)}.jsonl")
        journal.begin({"cell": "some"})
        versions = PackagedVersions(names=tuple(f"v{number}" for number in range(_COUNT)))
        said: list[str] = []
        return Search(versions, truth, journal, certainty=0.95, say=said.append).run()

    return run


Run = Callable[..., Found]


@pytest.mark.parametrize("first", range(1, _COUNT))
def test_a_bug_that_always_shows_is_found_in_as_many_builds_as_by_halving(
    search: Run, first: int
) -> None:
    truth = Truth(first=first)
    assert search(truth).versions == (first,)
    assert len(truth.asked) <= 2 + 6 + 3, "the ends, the binary logarithm of 32, one, and checks"


@pytest.mark.parametrize("share", [0.6, 0.4, 0.2])
def test_a_bug_that_shows_at_times_is_found_with_the_certainty_that_is_said(
    search: Run, share: float
) -> None:
    right, expected = 0, 0.0
    for seed in range(40):
        first = random.Random(seed).randrange(1, _COUNT)
        found = search(Truth(first=first, share=share, seed=seed))
        right += first in found.versions
        expected += found.certainty
    assert right >= expected - 4, f"{right} of 40 right, {expected:.1f} promised"


def test_a_loss_of_another_kind_does_not_mislead(search: Run) -> None:
    found = [search(Truth(first=20, share=0.9, share_before=0.03, seed=seed)) for seed in range(20)]
    assert sum(20 in one.versions for one in found) >= 18


def test_where_both_ends_lose_the_certainty_holds(search: Run) -> None:
    right, answered, expected = 0, 0, 0.0
    for seed in range(30):
        first = random.Random(seed).randrange(1, _COUNT)
        try:
            found = search(Truth(first=first, share=0.6, share_before=0.3, seed=seed))
        except HarnessError:
            continue  # so few trials may not tell the ends apart
        right, answered = right + (first in found.versions), answered + 1
        expected += found.certainty
    assert answered >= 20
    assert right >= expected - 2, f"{right} of {answered} right, {expected:.1f} promised"


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_a_bug_that_was_mended_and_came_back_has_no_first_version(
    search: Run, share: float
) -> None:
    doubted, wrong = 0, 0
    for seed in range(20):
        found = search(Truth(first=6, mended=range(13, 22), share=share, seed=seed))
        doubted += bool(found.misfits)
        wrong += not found.misfits and 6 not in found.versions
    assert wrong <= 1, f"{doubted} of 20 doubted, {wrong} wrong with a certainty"


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_a_bug_that_stays_is_seldom_told_to_have_been_mended(search: Run, share: float) -> None:
    found = [search(Truth(first=15, share=share, seed=seed)) for seed in range(40)]
    assert sum(bool(one.misfits) for one in found) <= 1
    assert all(0 < one.tried_before <= one.versions[0] for one in found)


def test_versions_that_do_not_build_stay_in_doubt(search: Run) -> None:
    truth = Truth(first=12, unbuilt=frozenset({10, 11, 12, 13}))
    assert search(truth).versions == (10, 11, 12, 13, 14)
    assert all(truth.asked[number] <= 1 for number in truth.unbuilt), "none is built twice"


@pytest.mark.parametrize("stops_after", range(9))
def test_an_interrupted_search_goes_on_without_a_trial_twice(
    search: Run, tmp_path: Path, stops_after: int
) -> None:
    whole = Truth(first=9, share=0.5)
    expected = search(whole)
    file = tmp_path / "interrupted.jsonl"
    stopped = Truth(first=9, share=0.5, stops_after=stops_after)
    with pytest.raises(StopError):
        search(stopped, file=file)
    going_on = Truth(first=9, share=0.5)
    assert search(going_on, file=file) == expected
    assert stopped.asked + going_on.asked == whole.asked


def test_a_step_that_was_cut_off_is_tried_again(search: Run, tmp_path: Path) -> None:
    file = tmp_path / "cut.jsonl"
    search(Truth(first=9), file=file)
    content = file.read_bytes()
    file.write_bytes(content[:-7])
    again = Truth(first=9)
    assert search(again, file=file).versions == (9,)
    assert again.asked.total() == 1
    assert file.read_bytes() == content


def test_ends_that_do_not_differ_are_refused(search: Run) -> None:
    with pytest.raises(HarnessError, match="v32 lost something in 0 of 64 trials"):
        search(Truth(first=_COUNT))
    with pytest.raises(HarnessError, match="v0 lost something in 4 of 4 trials"):
        search(Truth(first=0))
    with pytest.raises(HarnessError, match="v32 cannot be tried: does not build"):
        search(Truth(first=9, unbuilt=frozenset({32})))


def test_no_version_is_tried_without_end(search: Run) -> None:
    truth = Truth(first=5, share=0.1, share_before=0.05, seed=3)
    with pytest.raises(HarnessError, match="of 64 trials"):
        search(truth)
    assert max(truth.asked.values()) * _BATCH <= TRIALS_MAX


def test_another_search_does_not_go_on_with_these_steps(tmp_path: Path) -> None:
    Journal(file=tmp_path / "steps").begin({"cell": "one"})
    with pytest.raises(HarnessError, match="another search"):
        Journal(file=tmp_path / "steps").begin({"cell": "two"})


# A step of a search: which images it builds for the version that it tries.


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--zfs", ["--zfs", "V"]),
        ("--linux", ["--linux", "V"]),
        ("--linux-nas", ["nas", "--linux", "V"]),
        ("--linux-client", ["client", "--linux", "V"]),
    ],
)
def test_only_the_machine_that_varies_is_built(
    option: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def run(argv: Any, log: Path, **_words: Any) -> int:
        ran.append([str(word) for word in argv])
        log.write_text("no compiler\n")
        return 1

    monkeypatch.setattr(asked_search, "_run", run)
    versions: Any = SimpleNamespace(names=("V",), choice=lambda _number: "V")
    trier = SuiteTrier(
        versions=versions, cell="c", option=option, trials=4, seed=1, folder=tmp_path
    )
    step = trier.try_version(0, batch=0)
    assert [argv[argv.index("build") + 1 :] for argv in ran] == [words]
    assert "no compiler" in step.skipped


# The first version that loses: probabilities against slow integrals, and the version to try next.

_TRIED = st.dictionaries(
    st.integers(0, 4),
    st.tuples(st.integers(0, 6), st.integers(0, 6)).map(
        lambda pair: Tried(trials=sum(pair), losses=pair[0])
    ),
)


def _chance(tried: dict[int, Tried], first: int) -> float:
    """The probability of these outcomes if this version is the first one, by integrals over shares."""

    def side(numbers: range, prior: tuple[float, float]) -> float:
        own = [tried.get(number, Tried()) for number in numbers]
        losses = sum(one.losses for one in own)
        kept = sum(one.trials for one in own) - losses

        def density(share: float) -> float:
            return float(share**losses * (1 - share) ** kept * stats.beta.pdf(share, *prior))

        return float(integrate.quad(density, 0, 1)[0])

    before = (side(range(first), (1, 20)) + side(range(first), (1, 1))) / 2
    return before * side(range(first, 5), (1, 1))


@given(_TRIED)
def test_probabilities_are_those_of_the_integrals(tried: dict[int, Tried]) -> None:
    chances = np.array([0, *(_chance(tried, first) for first in range(1, 5))])
    assert first_probabilities(5, tried) == pytest.approx(chances / chances.sum(), abs=1e-6)


def test_without_a_trial_all_are_alike() -> None:
    assert first_probabilities(5, {}) == pytest.approx([0, 0.25, 0.25, 0.25, 0.25])
    with pytest.raises(ValueError, match="before it"):
        first_probabilities(1, {})


def test_many_losses_leave_one_version() -> None:
    tried = {0: Tried(trials=9), 2: Tried(trials=9), 3: Tried(trials=9, losses=9)}
    probabilities = first_probabilities(6, tried)
    assert probabilities[3] > 0.99
    assert lossy_probability(2, probabilities) < 0.01
    assert credible(probabilities, 0.95) == [3]
    assert to_try_next(probabilities, frozenset()) is None


def test_a_version_without_a_loss_may_lose_seldom() -> None:
    """One trial of a bug that shows in one of five says little."""
    ends = {0: Tried(trials=20), 8: Tried(trials=20, losses=4)}
    before = first_probabilities(9, ends)
    after = first_probabilities(9, ends | {4: Tried(trials=1)})
    assert 0.4 < lossy_probability(4, after) < lossy_probability(4, before)


@given(st.integers(2, 12), st.frozensets(st.integers(0, 12)))
def test_the_next_one_is_the_middle_one_that_can_be_tried(
    versions: int, untriable: frozenset[int]
) -> None:
    probabilities = first_probabilities(versions, {})
    following = to_try_next(probabilities, untriable)
    left = [number for number in range(1, versions - 1) if number not in untriable]
    if following is None:
        assert not left
    else:
        distances = {number: abs(lossy_probability(number, probabilities) - 0.5) for number in left}
        assert distances[following] == pytest.approx(min(distances.values()))


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_ends_are_compared_by_fishers_exact_test(
    good: int, good_losses: int, bad: int, bad_losses: int
) -> None:
    without = Tried(trials=good + good_losses, losses=good_losses)
    with_it = Tried(trials=bad + bad_losses, losses=bad_losses)
    table = np.array([[bad_losses, bad], [good_losses, good]])
    expected = stats.fisher_exact(table, alternative="greater")
    assert differ_p(without, with_it) == pytest.approx(expected.pvalue, abs=1e-9)


def test_a_version_unlike_its_side_is_told_by_an_exact_test() -> None:
    tried = {0: Tried(trials=12), 3: Tried(trials=4, losses=4), 6: Tried(trials=8)}
    tried |= {number: Tried(trials=8, losses=6) for number in (7, 8, 9)}
    unlike = unlikeness(tried, 7)
    one_side = stats.fisher_exact(np.array([[4, 0], [0, 20]])).pvalue
    assert unlike[3] == pytest.approx(6 * one_side)
    assert unlike[3] < 0.01
    assert {number: p for number, p in unlike.items() if number >= 7} == {7: 1.0, 8: 1.0, 9: 1.0}
    assert unlikeness({}, 3) == {}
