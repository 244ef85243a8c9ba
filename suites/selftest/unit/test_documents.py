"""The documents name paths, modules and options that are there; and CONTRIBUTING is short, and whole."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from suites.selftest.tiers import HOME, tier_of
from suites.selftest.unit.test_prose import hand_written_documents
from torture.files import CHECKOUT

OF_OTHERS = ("CHANGELOG.md", "docs/findings.md", "docs/fleet.md", "docs/reports/", "suites/")
"""Documents, and folders of them, with paths or options of older versions and of other projects."""
DOCUMENTS = tuple(
    document for document in hand_written_documents() if not document.startswith(OF_OTHERS)
)

CODE = re.compile(r"^```\w*\n(.*?)^```$|`([^`\n]+)`", re.MULTILINE | re.DOTALL)
IN_A_TREE = re.compile(r"(?<![\w./])[\w]+/(?![\w*])")
"""A folder of a folder that a block draws."""
LINK = re.compile(r"\]\(([^)]+)\)")
PATH = re.compile(
    r"(?<![\w/.$~:=@<-])([\w.*-]+/[\w./*-]*|[\w*.-]+\.(?:py|toml|sh|txt|md))(?![\w/])"
)
MODULE = re.compile(r"(?<![\w/])torture(?:\.\w+)+(?![\w=])")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
TO_FILL_IN = re.compile(r"(as_)?[A-Z]+(\.[a-z]+)?")
ELSEWHERE = {
    "usr/sbin/x": "in a guest",
    "sbin/x": "in a guest",
    "logs/": "in the images' cache",
    "trials/": "in a run",
    "workers/": "in a run",
    "repro/": "in a run",
    "report.md": "what an export writes",
    "forum.md": "the same",
}
RECIPE_LINES_MAX = 19
STYLE_LINES_MAX = 40
ARCHITECTURE_WORDS_MAX = 1200


def text_of(document: str) -> str:
    return (CHECKOUT / document).read_text()


def code_in(text: str) -> Iterator[str]:
    """The text in backticks, and every block but for the trees of folders in it."""
    for block, span in CODE.findall(text):
        yield IN_A_TREE.sub("", block) or span


def paths_in(text: str) -> set[str]:
    """Every path, up to what the reader has to fill in; runs are theirs, too."""
    found = {path for code in code_in(text) for path in PATH.findall(code)}
    links = {link.partition("#")[0] for link in LINK.findall(text)}
    return {known_part(path) for path in found | links} - {""}


def known_part(path: str) -> str:
    """`results/RUN/trials` becomes `results`, `torture/report/NAME.py` becomes `torture/report`."""
    if path.startswith("results/") and path != "results/README.md":
        return "results"
    parts = path.split("/")
    blanks = [place for place, part in enumerate(parts) if TO_FILL_IN.fullmatch(part)]
    return path if not blanks else "/".join(parts[: blanks[0]]) + "/" * (blanks[0] > 0)


def absent_of(text: str, *, bases: tuple[str, ...] = ()) -> set[str]:
    """The paths in a text that are neither in the checkout nor in a base, nor the name of a file."""
    absent = paths_in(text) - file_names() - ELSEWHERE.keys()
    return {
        path for path in absent if not any(any((CHECKOUT / at).glob(path)) for at in ("", *bases))
    }


@functools.cache
def file_names() -> frozenset[str]:
    """Of all that the project has written."""
    folders = ("torture", "fixtures", "suites", "vmimages")
    return frozenset(path.name for folder in folders for path in (CHECKOUT / folder).rglob("*"))


@functools.cache
def known_options() -> frozenset[str]:
    """Every option that a source of ours spells: those of pytest and the tools, and of programs."""
    files = [
        path
        for folder in ("torture", "fixtures", "tools", "suites/speed")
        for path in (CHECKOUT / folder).rglob("*")
    ]
    texts = [path.read_text() for path in files if path.suffix in {"", ".py"} and path.is_file()]
    return frozenset(re.findall(r"[\"'](--[a-z][a-z-]+)", "\n".join(texts)))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_in_a_document_is_there(document: str) -> None:
    bases = ("torture", str(Path(document).parent))
    assert absent_of(text_of(document), bases=bases) == set()


def test_the_readme_lists_every_page() -> None:
    pages = {page for page in hand_written_documents() if re.fullmatch(r"\w+\.md|docs/[^/]+", page)}
    assert pages - {"README.md", *LINK.findall(text_of("README.md"))} == set()


def test_a_citation_has_the_version() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    assert f"\nversion: {project['version']}\n" in text_of("CITATION.cff")


def test_every_finding_that_the_readme_links_is_there() -> None:
    linked = {
        link.partition("#")[2]
        for link in LINK.findall(text_of("README.md"))
        if link.startswith("docs/findings.md#")
    }
    assert linked
    assert linked - anchors_in(text_of("docs/findings.md")) == set()


def test_every_finding_begins_with_the_affected_and_the_remedy() -> None:
    _, *sections = text_of("docs/findings.md").split("\n## ")
    begins = re.compile(r".*\n\n- \*\*Who is affected:\*\* .*\n(  .*\n)*- \*\*What to do:\*\* ")
    assert [x.splitlines()[0] for x in sections if not begins.match(x)] == []


REPORTS = sorted((CHECKOUT / "docs/reports").glob("[!R]*.md"))
REPORT_ROWS = ("project", "goes to", "tried", "not tried", "affected from", "affected to", "fix")


def test_every_report_is_listed() -> None:
    index = text_of("docs/reports/README.md")
    assert REPORTS
    assert {path.name for path in REPORTS} == set(re.findall(r"^\| \[.*?\]\((.*?)\)", index, re.M))


@pytest.mark.parametrize("report", REPORTS, ids=lambda path: path.stem)
def test_a_report_has_its_versions_and_a_text_to_send(report: Path) -> None:
    text = report.read_text()
    rows = set(re.findall(r"^\| ([a-z ]+) \|", text, re.M))
    assert {"finding", "findings"} & rows
    assert set(REPORT_ROWS) - rows == set()
    assert text.count("\n```") == 2, "one text, to the end"
    assert text.endswith("\n```\n")
    assert "the help of a coding assistant" in text


@pytest.mark.parametrize("report", REPORTS, ids=lambda path: path.stem)
def test_a_reports_links_are_there(report: Path) -> None:
    links = [link.partition("#") for link in LINK.findall(report.read_text())]
    assert [path for path, _, _ in links if not (report.parent / path).is_file()] == []
    anchors = {anchor for path, _, anchor in links if path == "../findings.md"}
    assert anchors
    assert anchors - anchors_in(text_of("docs/findings.md")) == set()


def anchors_in(text: str) -> set[str]:
    """The anchors that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_module_in_a_document_can_be_found(document: str) -> None:
    modules = {name for code in code_in(text_of(document)) for name in MODULE.findall(code)}
    assert {name for name in modules if not is_found(name)} == set()


def is_found(name: str) -> bool:
    """Whether this is a module, or a function or class in one."""
    home, _, last = name.rpartition(".")
    folder = CHECKOUT / home.replace(".", "/")
    if folder.is_dir():
        return (folder / last).is_dir() or (folder / f"{last}.py").is_file()
    module = folder.with_suffix(".py")
    pattern = re.compile(rf"^(class|def) {last}\b", re.MULTILINE)
    return module.is_file() and pattern.search(module.read_text()) is not None


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_option_in_a_document_is_known(document: str) -> None:
    options = {option for code in code_in(text_of(document)) for option in OPTION.findall(code)}
    assert options - known_options() == set()


def test_missing_paths_are_found() -> None:
    text = "`kernel/` and `tools/nothing x`, [here](torture/gone.py), `torture/report/NAME.py`, `no.toml`"
    assert absent_of(text) == {"kernel/", "tools/nothing", "torture/gone.py", "no.toml"}
    assert absent_of("`results/RUN/trials/TRIAL` and `tools/run suites/powercut`") == set()
    assert not is_found("torture.choices.slogs.floppy")
    assert not is_found("torture.trials.trial.one_trial.walk_trial")
    assert is_found("torture.trials.trial.one_trial.run_trial")
    assert "--floppy" not in known_options()


def test_nothing_is_excused_that_no_document_names() -> None:
    named = {path for document in DOCUMENTS for path in paths_in(text_of(document))}
    assert ELSEWHERE.keys() <= named


def test_the_architecture_is_short() -> None:
    assert len(text_of("ARCHITECTURE.md").split()) <= ARCHITECTURE_WORDS_MAX


def recipes() -> dict[str, str]:
    """The recipes of CONTRIBUTING, by what they add."""
    _, *sections = text_of("CONTRIBUTING.md").split("\n### Add ")
    return {section.splitlines()[0]: section for section in sections}


def test_a_recipe_is_short() -> None:
    lengths = {name: len(recipe.splitlines()) for name, recipe in recipes().items()}
    assert len(lengths) >= 9
    assert {name: length for name, length in lengths.items() if length > RECIPE_LINES_MAX} == {}


def test_the_style_is_short() -> None:
    style = text_of("CONTRIBUTING.md").split("\n## Style\n")[1].split("\n## ")[0]
    assert len(style.strip().splitlines()) <= STYLE_LINES_MAX


def test_every_room_that_can_be_added_to_has_a_recipe() -> None:
    protocols = {
        str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "torture").rglob("protocol.py")
    }
    smallest = (CHECKOUT / "suites/selftest/shelf/one_file_each").iterdir()
    examples = {
        str(path.relative_to(CHECKOUT))
        for path in smallest
        if path.is_file() and path.name not in {"__init__.py", "play.py"}
    }
    why = "a task and its course have no toy, and versions have no protocol"
    assert (len(protocols), len(examples)) == (11, 10), why
    named = {path for recipe in recipes().values() for path in paths_in(recipe)}
    assert (protocols | examples) - named == set()


def test_every_tier_of_tests_is_documented() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| `suites/selftest/(.*?)` \|", text_of("CONTRIBUTING.md"), re.M
    )
    named = {HOME / folder: tier for tier, folders in rows for folder in folders.split("`, `")}
    folders = {path.parent for path in HOME.glob("*/test_*.py")}
    assert named == {folder: tier_of(folder / "test_it.py") for folder in folders}


def test_the_changelog_ends_with_todays_version() -> None:
    changelog = text_of("CHANGELOG.md")
    headings = re.findall(r"^## (.*)$", changelog, re.MULTILINE)
    releases = [re.fullmatch(r"(\d+)\.(\d+)\.(\d+) - (\d{4}-\d\d-\d\d)", x) for x in headings[1:]]
    assert headings[0] == "Unreleased"
    numbers = [tuple(map(int, release.groups()[:3])) for release in releases if release]
    assert len(numbers) == len(releases)
    assert numbers == sorted(set(numbers), reverse=True)
    dates = [release[4] for release in releases if release]
    assert dates == sorted(dates, reverse=True)
    version = tomllib.loads(text_of("pyproject.toml"))["project"]["version"]
    assert version == ".".join(map(str, numbers[0]))
