"""The documents that people write: every Markdown file of the checkout that no export made."""

from __future__ import annotations

import subprocess

from torture.checkout import CHECKOUT

_MADE = "<!-- export schema"


def hand_written_documents() -> tuple[str, ...]:
    """Their paths in the checkout; a document that git does not know yet is one, too."""
    git = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md")
    listed = subprocess.run(git, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    paths = sorted(set(listed.stdout.splitlines()))
    there = [path for path in paths if (CHECKOUT / path).is_file()]
    return tuple(path for path in there if not (CHECKOUT / path).read_text().startswith(_MADE))
