"""README's map of the code has every wing and room of `torture/`, and no other folder."""

from __future__ import annotations

import re

from torture.checkout import CHECKOUT

LINES_MAX = 45
HEADING = "\n## Where the code is\n\n```\n"
LINE = re.compile(r"( *)((?:\w+/ )*\w+/) +(\S.*)")
"""The indentation, the folders on this line, and their description."""
INDENT = 2


def map_text() -> str:
    """The tree in README, without its fences."""
    return (CHECKOUT / "README.md").read_text().split(HEADING)[1].split("```")[0].rstrip("\n")


def folders_in(tree: str) -> list[str]:
    """The path of each folder that a tree draws, in its order."""
    found: list[str] = []
    above: list[str] = []
    for line in tree.splitlines():
        parts = LINE.fullmatch(line)
        assert parts, f"no folder with a description: {line!r}"
        names = [name.rstrip("/") for name in parts[2].split()]
        above = [*above[: len(parts[1]) // INDENT], names[-1]]
        found += ["/".join([*above[:-1], name]) for name in names]
    return found


def code_folders() -> set[str]:
    """The wings and rooms of the engine."""
    modules = (CHECKOUT / "torture").rglob("*.py")
    parts = (path.parent.relative_to(CHECKOUT).parts[:3] for path in modules)
    return {"/".join(part[:depth]) for part in parts for depth in range(1, len(part) + 1)}


def test_the_map_has_every_wing_and_room_once() -> None:
    drawn = [path for path in folders_in(map_text()) if path.split("/")[0] == "torture"]
    assert sorted(drawn) == sorted(code_folders())


def test_every_folder_of_the_map_is_there() -> None:
    assert [path for path in folders_in(map_text()) if not (CHECKOUT / path).is_dir()] == []


def test_the_map_is_short() -> None:
    assert len(map_text().splitlines()) <= LINES_MAX


def test_no_other_document_draws_it() -> None:
    documents = [*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").glob("*.md")]
    drawn = [path.name for path in documents if re.search(r"^ +oracles/ ", path.read_text(), re.M)]
    assert drawn == ["README.md"]


def test_folders_are_found_in_a_tree() -> None:
    tree = "tools/    thin\nengine/   all\n  a/        one\n    b/ c/     two\n  d/        three"
    assert folders_in(tree) == [
        "tools",
        "engine",
        "engine/a",
        "engine/a/b",
        "engine/a/c",
        "engine/d",
    ]
