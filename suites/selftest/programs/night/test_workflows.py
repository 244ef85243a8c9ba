"""The CI's files fit their schemas, pin what they use, and call only what is there and takes it."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from suites.selftest.programs.launcher import LAUNCHER, run_program
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.features.night.plan import Plan, night_parser
from torture.files import CHECKOUT

GITHUB = tuple(sorted((CHECKOUT / ".github" / "workflows").glob("*.yml")))
GITLAB = CHECKOUT / ".gitlab-ci.yml"
GITHUB_NAMES = ("pull-request.yml", "nightly.yml")
HOSTS = ("debian:12", "debian:13")
"""Those that the README names, as containers."""

PINNED = re.compile(r"[\w-]+/[\w./-]+@[0-9a-f]{40}")
VERSIONED = re.compile(r"uses:\s*\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
CLEVER = re.compile(r"[|;&<>`\\]|\$\(|\$\{")
"""The words that make a command a script: logic belongs in tools/."""
VARIABLE = re.compile(r"\$(\w+)")
PLAIN = frozenset({"apt-get", "mkdir"})

SAMPLES = {
    "matrix": "quick", "shard": "1/2", "shards": "2", "trials": "1", "seed": "7",
}  # fmt: skip
"""Values for the variables of the commands, to try these with."""
PLAN = Plan(cells=cells_of(Matrix.QUICK), shards=2, trials=1, seed=7)


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """One line that a CI's shell gets."""

    line: str
    variables: frozenset[str]
    """That are set for it."""


def load(path: Path) -> Any:
    return YAML(typ="safe").load(path)


def github_steps(workflow: Any) -> Iterator[tuple[dict[str, Any], frozenset[str]]]:
    """Every step, and the names in its environment."""
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            scopes = (workflow, job, step)
            yield step, frozenset(name for scope in scopes for name in scope.get("env", {}))


def github_commands(workflow: Any) -> Iterator[Command]:
    for step, variables in github_steps(workflow):
        for line in str(step.get("run", "")).splitlines():
            yield Command(line=line, variables=variables)


def complaint_about(command: Command) -> str | None:
    """Why a command cannot be what a CI runs; None when it can."""
    if CLEVER.search(command.line):
        return f"too clever, put it into tools/: {command.line}"
    unset = set(VARIABLE.findall(command.line)) - command.variables
    if unset:
        return f"no step sets {', '.join(sorted(unset))}: {command.line}"
    line = VARIABLE.sub(lambda found: SAMPLES[found[1].lower()], command.line)
    program, *arguments = shlex.split(line)
    if program in PLAIN:
        return None
    if not program.startswith(("tools/", ".ci/")):
        return f"neither a tool of ours nor plain: {command.line}"
    path = CHECKOUT / program
    if not path.is_file() or not path.stat().st_mode & 0o100:
        return f"there is no {program} that can be started: {command.line}"
    refusal = refusal_of(program, tuple(arguments))
    return f"{command.line}: {refusal}" if refusal else None


@functools.cache
def refusal_of(program: str, arguments: tuple[str, ...]) -> str:
    """The tool's objections to its arguments; nothing is run but its own reading of them."""
    match program, arguments:
        case ("tools/run", ("--setup-only",)) | (".ci/run", ()) | (".ci/site", (_, _)):
            return ""
        case "tools/run", (suite, *_) if suite.startswith("suites/"):
            done = LAUNCHER.run("-m", "pytest", "--collect-only", "-q", *arguments)
            return "" if done.returncode == 0 else done.stdout + done.stderr
        case "tools/night", _:
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                try:
                    night_parser("").parse_args(arguments)
                except SystemExit:
                    return said.getvalue()
            return ""
    return "this test does not know how to try this command"


def complaints_of_github(path: Path) -> list[str]:
    """The mistakes in a workflow that linters do not find."""
    text, workflow = path.read_text(), load(path)
    used = [step["uses"] for step, _ in github_steps(workflow) if "uses" in step]
    found = [f"{one} is not pinned to a commit" for one in used if not PINNED.fullmatch(one)]
    if len(VERSIONED.findall(text)) != len(used):
        found.append("a pin does not say which version it is")
    found += [
        f"{name} may run for ever"
        for name, job in workflow["jobs"].items()
        if "timeout-minutes" not in job
    ]
    asked_for = set(re.findall(r"steps\.plan\.outputs\.(\w+)", text))
    found += [f"tools/night plan writes no {name}" for name in asked_for - set(PLAN.outputs())]
    for name, job in workflow["jobs"].items():
        keys = set(re.findall(r"\bmatrix\.(\w+)", json.dumps(job)))
        found += [f"the matrix of {name} has no {key}" for key in keys - matrix_keys(job)]
    hashed = {
        glob for globs in re.findall(r"hashFiles\((.*?)\)", text) for glob in globs.split(",")
    }
    found += [f"no file is {glob}" for glob in hashed if not any(CHECKOUT.glob(glob.strip(" '")))]
    return found + [wrong for one in github_commands(workflow) if (wrong := complaint_about(one))]


def matrix_keys(job: dict[str, Any]) -> frozenset[str]:
    """The values of a job's matrix in each of its instances."""
    matrix = job.get("strategy", {}).get("matrix", {})
    if matrix.get("include") == "${{ fromJSON(needs.plan.outputs.shards) }}":
        return frozenset(json.loads(PLAN.outputs(hosts=HOSTS)["shards"])[0])
    return frozenset(matrix)


def linted(tool: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_program(Path(sys.executable).with_name(tool), *arguments)


def fits_schema(name: str, *paths: Path) -> bool:
    done = linted("check-jsonschema", "--builtin-schema", f"vendor.{name}", *paths)
    print(done.stdout, done.stderr)
    return done.returncode == 0


def is_safe(*paths: Path) -> bool:
    """Whether zizmor finds nothing of medium severity or more."""
    done = linted("zizmor", "--offline", "--no-progress", "--min-severity=medium", *paths)
    print(done.stdout, done.stderr)
    assert done.returncode in (0, 11, 12, 13, 14), "zizmor itself failed"
    return done.returncode == 0


def test_there_are_workflows() -> None:
    assert {path.name for path in GITHUB} >= set(GITHUB_NAMES)
    for path in GITHUB:
        assert any(one.line.startswith("tools/") for one in github_commands(load(path)))


def test_they_fit_their_schemas() -> None:
    assert fits_schema("github-workflows", *GITHUB)
    assert fits_schema("gitlab-ci", GITLAB)


def test_no_outsider_can_take_the_workflows_over() -> None:
    assert is_safe(*GITHUB)


@pytest.mark.parametrize("path", GITHUB, ids=lambda path: path.stem)
def test_github_calls_only_tools_that_are_there(path: Path) -> None:
    assert complaints_of_github(path) == []


def test_tests_and_cuts_run_on_every_host() -> None:
    pull_request, nightly = (load(CHECKOUT / ".github/workflows" / name) for name in GITHUB_NAMES)
    assert tuple(pull_request["jobs"]["selftest"]["strategy"]["matrix"]["host"]) == HOSTS
    assert pull_request["jobs"]["selftest"]["container"]["image"] == "${{ matrix.host }}"
    [plan] = [step["run"] for step in nightly["jobs"]["plan"]["steps"] if "run" in step]
    assert tuple(re.findall(r"--host (\S+)", plan)) == HOSTS
    assert nightly["jobs"]["cut"]["container"]["image"] == "${{ matrix.host }}"


BROKEN = {
    "pin": ("actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2", "actions/checkout@v6"),
    "no version": ("83dd # v6.0.2", "83dd"),
    "no deadline": ("timeout-minutes: 180", "continue-on-error: false"),
    "option": ('--shard "$SHARD"', '--shards "$SHARD"'),
    "value": ("--keep bad", "--keep worst"),
    "site's folders": (".ci/site site page", ".ci/site"),
    "night's option": ("--last last-night", "--since last-night"),
    "tool": ("tools/run --setup-only", "tools/setup"),
    "variable": ("SHARD: ${{", "PART: ${{"),
    "matrix": ("image: ${{ matrix.host }}", "image: ${{ matrix.hosts }}"),
    "hashed": ("'torture/machines/images/**'", "'torture/pictures/**'"),
    "output": ("steps.plan.outputs.seed", "steps.plan.outputs.seeds"),
    "pipe": ("tools/run --setup-only", "tools/run --setup-only | tee log"),
    "stranger": ("tools/run --setup-only", "curl https://example.invalid"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), BROKEN.values(), ids=BROKEN)
def test_a_broken_workflow_is_seen(old: str, new: str, tmp_path: Path) -> None:
    assert complaints_of_github(broken(old, new, tmp_path))


def test_the_nightly_hands_pages_one_site() -> None:
    """A second artifact for Pages makes the deployment fail."""
    steps = load(CHECKOUT / ".github/workflows/nightly.yml")["jobs"]["merge"]["steps"]
    handed = [step for step in steps if "upload-pages-artifact" in step.get("uses", "")]
    assert [step["with"]["path"] for step in handed] == ["site"]
    [built] = [step["run"] for step in steps if ".ci/site" in step.get("run", "")]
    assert built == ".ci/site site page"


def test_no_artifact_of_github_stands_in_the_way_of_another_try() -> None:
    """Also not where the last job alone is run again: it names the artifact of the job before it."""
    used = [step for path in GITHUB for step, _ in github_steps(load(path)) if "uses" in step]
    names = [step["with"]["name"] for step in used if "/upload-" in step["uses"]]
    assert len(names) >= 5
    assert [name for name in names if not name.endswith("-${{ github.run_attempt }}")] == []
    [deployed] = [step["with"] for step in used if "deploy-pages@" in step["uses"]]
    assert deployed == {"artifact_name": "${{ needs.merge.outputs.pages }}"}
    merge = load(CHECKOUT / ".github/workflows/nightly.yml")["jobs"]["merge"]
    assert "format('github-pages-{0}', github.run_attempt)" in merge["outputs"]["pages"]


def test_evidence_is_kept_apart_from_records_and_has_a_limit() -> None:
    """A CI refuses too large an artifact as a whole."""
    nightly = load(CHECKOUT / ".github/workflows/nightly.yml")
    steps = nightly["jobs"]["cut"]["steps"]
    trim, records, evidence = steps[-3:]
    assert {step["if"] for step in steps[-3:]} == {"always()"}
    assert "tools/night trim night --mib " in trim["run"]
    assert "!night/*/trials" in records["with"]["path"].split()
    assert evidence["with"]["path"].split()[0] == "night/*/trials"
    assert evidence["with"]["retention-days"] < records["with"]["retention-days"]
    download = {"pattern": "{night,evidence}-*", "path": "artifacts", "merge-multiple": True}
    assert download in [step.get("with") for step in nightly["jobs"]["merge"]["steps"]]


def test_a_schedule_that_stopped_is_noticed() -> None:
    pull_request = load(CHECKOUT / ".github/workflows/pull-request.yml")
    steps = pull_request["jobs"]["smoke"]["steps"]
    [restored] = [step["with"] for step in steps if step.get("name") == "Last night"]
    nightly = (CHECKOUT / ".github/workflows/nightly.yml").read_text()
    assert "key: last-night-${{ env.MATRIX }}-" in nightly
    assert (restored["path"], restored["restore-keys"]) == ("last-night", "last-night-default-")
    assert any(step.get("run", "").startswith("tools/night age last-night") for step in steps)


def test_a_wrong_key_does_not_fit_the_schema(tmp_path: Path) -> None:
    assert not fits_schema("github-workflows", broken("runs-on:", "run-on:", tmp_path))


def test_a_strangers_words_in_a_command_is_not_safe(tmp_path: Path) -> None:
    assert not is_safe(broken('--shards "$SHARDS"', "--shards ${{ github.head_ref }}", tmp_path))


def test_credentials_left_behind_are_not_safe(tmp_path: Path) -> None:
    assert not is_safe(broken("persist-credentials: false", "fetch-depth: 1", tmp_path))


def broken(old: str, new: str, folder: Path) -> Path:
    """A copy of the nightly workflow with something replaced."""
    path = folder / ".github" / "workflows" / "nightly.yml"
    path.parent.mkdir(parents=True)
    shutil.copy(CHECKOUT / ".github" / "workflows" / "nightly.yml", path)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    return path
