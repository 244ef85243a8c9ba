"""The documents as a site: every link holds, and the menu has every page and those beside it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from torture.checkout import CHECKOUT

DEADLINE_S = 240


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a night; mkdocs fails at a link to nothing, and at a document outside the menu."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "night").mkdir()
    (folder / "night" / "index.html").write_text("a night")
    done = subprocess.run(
        [CHECKOUT / ".ci" / "site", folder / "built", folder / "night"],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}next: tools/run --setup-only"
    return folder / "built"


@pytest.mark.timeout(DEADLINE_S + 10)
def test_the_first_page_is_the_readme(site: Path) -> None:
    page = (site / "index.html").read_text()
    assert 'id="main-results"' in page
    assert (site / "report.png").is_file()
    assert 'src="report.png"' in page


@pytest.mark.timeout(DEADLINE_S + 10)
def test_the_pages_beside_the_documents_are_there(site: Path) -> None:
    page = (site / "docs" / "findings.html").read_text()
    for name in ("published", "night"):
        assert f'href="../{name}/index.html"' in page
        assert (site / name / "index.html").is_file()
    assert (site / "night" / "index.html").read_text() == "a night"
    assert (site / "docs" / "reproducers" / "zfs-18920.sh").is_file()


@pytest.mark.timeout(DEADLINE_S + 10)
def test_a_bar_in_the_code_of_a_table_is_one(site: Path) -> None:
    page = (site / "index.html").read_text()
    assert "<code>--matrix quick|default|full</code>" in page
    assert 'id="__search"' in page


@pytest.mark.timeout(DEADLINE_S + 10)
def test_every_document_is_in_the_menu(site: Path) -> None:
    """Those of a folder by itself, too, which a theme may take for the heading of a section."""
    page = (site / "docs" / "findings.html").read_text()
    for name in ("results", "vmimages", "torture/machines/shelf/native"):
        assert re.search(rf'href="../{name}/index.html" class="md-nav__link"', page)


@pytest.mark.timeout(DEADLINE_S + 10)
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
