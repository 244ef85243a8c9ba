"""The linters are tests. Each speaks for the whole project, as typing them here would: see its output."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from suites.selftest.programs.launcher import run_program
from torture.files import CHECKOUT
from torture.machines.host.scratch import own_cache_root

DEADLINE_S = 240
"""For a cold mypy on a busy machine; with its cache it needs two seconds."""

BIN = Path(sys.executable).parent
FOLDERS = ("torture", "fixtures", "suites", "vmimages", "tools", ".ci", ".github")
SHEBANG = re.compile(rb"#! ?/(usr/)?bin/(env )?(ba|da)?sh\b")
SOURCED = "vmimages/*/files/etc/torture/start"
"""Shell without a first line that says so."""
BYTES = frozenset({"vmimages/nas/files/etc/hostid"})
"""Files that look like text and are read byte for byte."""
NOT_OURS = frozenset({".png", ".patch"})
"""A patch has the style of the lines that it changes."""
SUFFIXES = frozenset({"", ".ini", ".md", ".toml", ".txt", ".yaml", ".yml"})
"""Of what people write at the top."""


def lint(tool: str, *arguments: str) -> None:
    """Fails with everything the tool printed, and when it is missing: the set-up installs it."""
    program = BIN / tool
    assert program.exists(), f"{tool} is not installed; next: tools/run --setup-only"
    # a suite that colours or wraps its own output must not do so with the linters'
    done = run_program(program, *arguments, deadline_s=DEADLINE_S, NO_COLOR="1", TERM="dumb")
    if done.returncode != 0:
        again = shlex.join([tool, *arguments])
        pytest.fail(f"{done.stdout}{done.stderr}again: {again}", pytrace=False)


def tools() -> list[str]:
    """Every tool, so that none can be forgotten in mypy's own list."""
    return [f"tools/{path.name}" for path in sorted((CHECKOUT / "tools").iterdir())]


def written() -> Iterator[str]:
    """Every text that people write, by its path in the checkout; runs and recordings are none."""
    yield from tops()
    for path in sorted(path for folder in FOLDERS for path in (CHECKOUT / folder).rglob("*")):
        name = str(path.relative_to(CHECKOUT))
        is_text = "__pycache__" not in path.parts and path.suffix not in NOT_OURS
        if path.is_file() and is_text and "/recorded/" not in name:
            yield name


def tops() -> list[str]:
    """Texts that lie in no folder of code."""
    files = [path for path in CHECKOUT.iterdir() if path.is_file() and path.name != ".git"]
    return [*sorted(path.name for path in files if path.suffix in SUFFIXES), "results/README.md"]


def shell_scripts() -> list[str]:
    return [name for name in written() if SHEBANG.match((CHECKOUT / name).read_bytes())]


def sourced() -> list[str]:
    return [name for name in written() if Path(name).match(SOURCED)]


@pytest.mark.timeout(DEADLINE_S + 10)
def test_mypy(tmp_path: Path) -> None:
    """Its earlier findings hold for every checkout: it goes by the content of the files."""
    cache = f"--cache-dir={own_cache_root() / 'mypy'}"
    hiding = {tool for tool in tools() if Path(tool).name in sys.stdlib_module_names}
    modules = [tool for tool in tools() if tool not in hiding]
    for tool in hiding:  # as a module of its own name it would hide Python's
        copy = tmp_path / f"{Path(tool).name}_tool.py"
        copy.write_bytes((CHECKOUT / tool).read_bytes())
        modules.append(str(copy))
    lint("mypy", cache, "--strict", "torture", "fixtures", "suites", "vmimages", *modules)


def test_ruff_check() -> None:
    lint("ruff", "check", ".")


def test_ruff_format() -> None:
    lint("ruff", "format", "--check", ".")


def test_shellcheck() -> None:
    lint("shellcheck", *shell_scripts())
    lint("shellcheck", "--shell=sh", *sourced())


def test_codespell() -> None:
    lint("codespell", "--check-hidden", *FOLDERS, *tops())


def test_the_files_they_look_at_are_there() -> None:
    names = set(written())
    assert {"README.md", "CONTRIBUTING.md", "tools/run", ".ci/run", "results/README.md"} <= names
    assert {".ci/run", "vmimages/boot/init", "vmimages/zfs/stage.sh"} <= set(shell_scripts())
    assert len(sourced()) == 2


def test_a_tool_finds_a_mistake(tmp_path: Path) -> None:
    """So that an empty list, or a setting, has not silenced it."""
    wrong = tmp_path / "wrong.sh"
    wrong.write_text("#!/bin/sh\n# it rec" + "ie" + "ves nothing\nrm $1\n")
    for tool, found in {"shellcheck": "SC2086", "codespell": "receives"}.items():
        with pytest.raises(pytest.fail.Exception, match=found):
            lint(tool, str(wrong))


def complaints_about(content: bytes) -> list[str]:
    """The lines that `.editorconfig` would have written otherwise."""
    rules = {
        "an end that is no line's": not content.endswith(b"\n"),
        "a carriage return": b"\r" in content,
        "a tab that indents": re.search(rb"^ *\t", content, re.MULTILINE),
        "a blank at the end of a line": re.search(rb"[ \t]$", content, re.MULTILINE),
        "no UTF-8": content.decode(errors="replace").encode() != content,
    }
    return [complaint for complaint, is_so in rules.items() if is_so]


def test_texts_are_as_an_editor_would_leave_them() -> None:
    found = {
        name: complaints
        for name in written()
        if name not in BYTES and (complaints := complaints_about((CHECKOUT / name).read_bytes()))
    }
    assert found == {}


@pytest.mark.parametrize("content", [b"a", b"a\r\n", b"\ta\n", b"a \n", b"\xff\n"])
def test_a_text_that_an_editor_would_change_is_found(content: bytes) -> None:
    assert len(complaints_about(content)) == 1


def hooks() -> dict[str, dict[str, Any]]:
    """The hooks that look at each commit, by their id."""
    config = YAML(typ="safe").load(CHECKOUT / ".pre-commit-config.yaml")
    assert [repo["repo"] for repo in config["repos"]] == ["local"], "nothing is fetched"
    return {hook["id"]: hook for hook in config["repos"][0]["hooks"]}


def test_a_commit_is_looked_at_by_the_same_tools() -> None:
    programs = {shlex.split(hook["entry"])[0] for hook in hooks().values()}
    assert programs == {f".venv/bin/{t}" for t in ("mypy", "ruff", "shellcheck", "codespell")}
    assert {hook["language"] for hook in hooks().values()} == {"system"}


@pytest.mark.parametrize(
    ("hook", "names"), [("shellcheck", shell_scripts()), ("shellcheck-sourced", sourced())]
)
def test_a_commit_has_the_same_scripts_looked_at(hook: str, names: list[str]) -> None:
    pattern = re.compile(hooks()[hook]["files"])
    assert [name for name in written() if pattern.search(name)] == names
