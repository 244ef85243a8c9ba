"""The documents as a site: every link holds, and the menu has every page and those beside it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from suites.selftest.programs.launcher import run_program
from torture.files import CHECKOUT

DEADLINE_S = 240
pytestmark = pytest.mark.timeout(DEADLINE_S + 10)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a night; mkdocs fails at a link to nothing, and at a document outside the menu."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "night").mkdir()
    (folder / "night" / "index.html").write_text("a night")
    argv = (CHECKOUT / ".ci" / "site", folder / "built", folder / "night")
    done = run_program(*argv, deadline_s=DEADLINE_S)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}next: tools/run --setup-only"
    return folder / "built"


@pytest.mark.parametrize(
    ("document", "text", "warning"),
    [
        ("docs/notes.md", "[there](nowhere/at-all.md)\n", "nowhere/at-all.md"),
        ("docs/notes.md", "[there](audit.md#no-such-heading)\n", "no-such-heading"),
        ("docs/outside-the-menu.md", "# A page\n", "outside-the-menu.md"),
    ],
)
def test_no_site_is_built_with_a_dead_link_or_a_page_outside_the_menu(
    document: str, text: str, warning: str, tmp_path: Path
) -> None:
    copy = tmp_path / "checkout"
    ignored = shutil.ignore_patterns(".git", ".venv", "published", "20*", ".*_cache", ".hypothesis")
    shutil.copytree(CHECKOUT, copy, ignore=ignored, symlinks=True)
    (copy / ".venv").symlink_to(CHECKOUT / ".venv")
    with (copy / document).open("a") as file:
        file.write(text)
    done = run_program(copy / ".ci" / "site", tmp_path / "built", deadline_s=DEADLINE_S)
    assert done.returncode != 0
    assert warning in done.stderr
    assert "Aborted with 1 warning" in done.stdout


def test_the_first_page_is_the_readme(site: Path) -> None:
    page = (site / "index.html").read_text()
    assert 'id="main-results"' in page
    assert (site / "report.png").is_file()
    assert 'src="report.png"' in page


def test_the_pages_beside_the_documents_are_there(site: Path) -> None:
    page = (site / "docs" / "findings.html").read_text()
    for name in ("published", "night"):
        assert f'href="../{name}/index.html"' in page
        assert (site / name / "index.html").is_file()
    assert (site / "night" / "index.html").read_text() == "a night"
    assert (site / "docs" / "reproducers" / "zfs-18920.sh").is_file()


def test_each_set_up_has_a_page_that_a_forum_previews(site: Path) -> None:
    pages = {
        page.stem.removeprefix("setup-"): page.read_text()
        for page in (site / "published").glob("setup-*.html")
    }
    assert {"pve-lun-lvm", "pve-nfs-raw", "files-nfs"} <= pages.keys()
    for name, page in pages.items():
        assert 'property="og:title"' in page
        assert 'property="og:description"' in page
        (link, *_) = re.findall(r'href="([^"#]+)#run=([\w-]+)&amp;', page)
        assert link == ("index.html", name)


def test_a_bar_in_the_code_of_a_table_is_one(site: Path) -> None:
    page = (site / "index.html").read_text()
    assert "<code>--matrix quick|default|full</code>" in page
    assert 'id="__search"' in page


def test_every_document_is_in_the_menu(site: Path) -> None:
    """Those of a folder by itself, too, which a theme may take for the heading of a section."""
    page = (site / "docs" / "findings.html").read_text()
    for name in ("results", "vmimages", "torture/machines/shelf/native"):
        assert re.search(rf'href="../{name}/index.html" class="md-nav__link"', page)


def test_no_markdown_is_left_as_it_was_written(site: Path) -> None:
    pages = [
        path for path in site.rglob("*.html") if path.parent.name not in {"published", "night"}
    ]
    assert len(pages) >= 20
    code = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
    for path in pages:
        [text] = re.findall(r"<article.*?</article>", path.read_text(), re.DOTALL) or [""]
        shown = code.sub("", text)
        assert not re.search(r"^\s*[|-] |\n- |\*\*|`|\]\(", shown, re.MULTILINE), path
