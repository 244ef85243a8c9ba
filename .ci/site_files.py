"""A hook of mkdocs: which files of the checkout are on the site, and the pages beside them.

The documents keep their paths, so that links between them hold on the site as they do in the checkout.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.nav import Link, Navigation
from mkdocs.structure.pages import Page

CHECKOUT = Path(__file__).resolve().parents[1]
FILES = (
    "*.md",
    "docs/*.md",
    "docs/reports/*.md",
    "docs/reproducers/**/*",
    "results/README.md",
    "torture/machines/shelf/native/README.md",
    "vmimages/README.md",
    "vmimages/scst/*.patch",
    "vmimages/zfs/fixes/*.patch",
)
"""Globs in the checkout."""
MOVED = {".github/report.png": "report.png"}
"""Files with another path on the site: the Pages of GitHub leave a folder `.github` out."""
STYLE = ".md-typeset td code { word-break: normal; }\n"
"""Names of fields stay in one piece; a table that gets too wide for it is scrolled."""
TABLE_CODE = re.compile(r"(?<=[^`])`[^`\n]+`")
PAGES = "SITE_PAGES"
"""A variable with the folders of pages that are put beside the site: names, with blanks between."""
PAGE_TITLES = {"published": "Page of the published runs", "night": "Page of the last night"}


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """The files of the site instead of those in `docs_dir`."""
    for file in [file for file in files if file.src_dir == config.docs_dir]:
        files.remove(file)
    found = sorted(path for glob in FILES for path in CHECKOUT.glob(glob) if path.is_file())
    paths = {str(path.relative_to(CHECKOUT)): path for path in found}
    paths |= {new: CHECKOUT / old for old, new in MOVED.items()}
    for uri, path in paths.items():
        # said outright: mkdocs leaves some names out by itself
        included = InclusionLevel.INCLUDED
        files.append(File.generated(config, uri, abs_src_path=str(path), inclusion=included))
    files.append(File.generated(config, "site.css", content=STYLE))
    return files


def on_nav(nav: Navigation, *, config: MkDocsConfig, files: Files) -> Navigation:
    """Links to the pages beside the site, which are none of mkdocs's."""
    for name in os.environ.get(PAGES, "").split():
        nav.items.append(Link(PAGE_TITLES[name], f"{name}/index.html"))
    return nav


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The text with links to the moved files, and with tables as Python's Markdown reads them.

    GitHub takes `\\|` in a table's code for a bar, where Python's Markdown shows both signs.
    """
    for old, new in MOVED.items():
        markdown = markdown.replace(f"]({old})", f"]({new})")
    lines = markdown.split("\n")
    return "\n".join(_with_bars(line) if line.startswith("|") else line for line in lines)


def _with_bars(row: str) -> str:
    return TABLE_CODE.sub(lambda code: code[0].replace("\\|", "|"), row)
