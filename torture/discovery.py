"""The modules of a folder as a registry: each module offers one object or several, without a list.

So a new transport, filesystem, schedule ... is one new file, and no list has to be edited. A folder
outside of the repository may have further loads and SLOG kinds (`EXTRA_VARIABLE`).
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pkgutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torture.errors import HarnessError

_ALL_AXES = "torture.choices.matrix.cells"
FEATURES = "torture.features"
"""The package of features: one can take each out. A feature extends a package of the core by a module
of its name."""
NOT_OFFERS = frozenset({"protocol"})
"""Modules that define the form of the others."""
EXTRA_VARIABLE = "TORTURE_EXTRA"
"""The variable with the folder of `--extra`. Choices are found as modules load, and in each worker."""
EXTENDED = {"slogs": "torture.choices.slogs", "workloads": "torture.choices.workloads"}
"""The folders of an extra, and the package that each extends."""
_MOVED = {
    "torture.checkout": "torture.files",
    "torture.choices.matrix.axes": "torture.choices.matrix.cells",
    "torture.choices.workloads._beside": "torture.choices.workloads._files_beside",
    "torture.facts.evidence.completed_command": "torture.facts.evidence.folder",
    "torture.facts.evidence.phase": "torture.facts.evidence.cut_document",
    "torture.facts.evidence.strict_json": "torture.facts.evidence.documents",
    "torture.facts.recording.roles": "torture.facts.recording.intent_log",
    "torture.oracles.verdict.blocks.readback": "torture.oracles.verdict.blocks.history",
    "torture.oracles.verdict.moments": "torture.oracles.verdict.observations",
    "torture.oracles.verdict.terms": "torture.oracles.verdict.guarantee",
    "torture.oracles.verdict.verdicts": "torture.oracles.verdict.guarantee",
    "torture.oracles.verdict.whole_ledger": "torture.oracles.verdict.repeated_requests",
}
"""Former modules that an extra may import, and where their content is now."""


def offered(package: str, name: str) -> tuple[Any, ...]:
    """The object that each module of a package calls `name`, in the order of the modules' names.

    A module may offer several instead: a tuple by the plural, e.g. `CHOICES` for `CHOICE`. Modules
    whose name starts with an underscore, and those of `NOT_OFFERS`, offer nothing. Features offer
    theirs after them. Raises `ImportError` for another module without it: a misspelt offer must not go
    unnoticed.
    """
    found: list[Any] = []
    folder = importlib.import_module(package)
    for name_of_extra, extended in EXTENDED.items():
        if extended == package and (extra := extra_folder()) is not None:
            folder.__path__.append(str(extra / name_of_extra))
    modules = [
        f"{package}.{one}"
        for one in _modules_in(folder.__path__)
        if not one.startswith("_") and one not in NOT_OFFERS
    ]
    for module in modules:
        found += _offers_of(module, name)
    return (*found, *offered_by_features(package.rpartition(".")[2], name))


def offered_by_features(part: str, name: str) -> tuple[Any, ...]:
    """The object that each feature's module `part` calls `name`, or several; see `offered`."""
    features = importlib.import_module(FEATURES)
    folders = [Path(path) for path in features.__path__]
    return tuple(
        offer
        for one in _modules_in(features.__path__)
        if any((folder / one / f"{part}.py").exists() for folder in folders)
        for offer in _offers_of(f"{FEATURES}.{one}.{part}", name)
    )


def _offers_of(module_name: str, name: str) -> tuple[Any, ...]:
    module = importlib.import_module(module_name)
    if hasattr(module, f"{name}S"):
        return tuple(getattr(module, f"{name}S"))
    if hasattr(module, name):
        return (getattr(module, name),)
    raise ImportError(f"{module_name} does not define {name}", name=module_name)


def _modules_in(path: Iterable[str]) -> list[str]:
    return sorted(info.name for info in pkgutil.iter_modules(path))


def extra_folder() -> Path | None:
    """The folder of `--extra`; None without one."""
    text = os.environ.get(EXTRA_VARIABLE)
    return Path(text) if text else None


def extra_files() -> dict[str, bytes]:
    """The Python files of `--extra` by their paths in it; raises `HarnessError` for a useless folder."""
    extra = extra_folder()
    if extra is None:
        return {}
    files = {
        str(path.relative_to(extra)): path.read_bytes()
        for name in EXTENDED
        for path in sorted((extra / name).glob("*.py"))
    }
    if not files:
        raise HarnessError(
            f"--extra {extra}: there is no Python file in {' or '.join(f'{n}/' for n in EXTENDED)}",
            hint=f"ls {extra}",
        )
    return files


def extra_digests() -> dict[str, str]:
    """The SHA-256 of each file of `--extra`, by its path there."""
    return {name: hashlib.sha256(data).hexdigest() for name, data in extra_files().items()}


def require_extra() -> None:
    """Load the modules of `--extra`, and all axes with them.

    Raises `HarnessError` for one that has the name of a module of the suite, or that does not load.
    """
    names = extra_files()
    for name in names:
        ours = Path(__file__).parent / "choices" / name
        if ours.exists():
            raise HarnessError(
                f"--extra {extra_folder()}: {name} has the name of a module of the suite",
                hint=f"rename it; {ours.parent} has the taken names",
            )
    modules = [f"{EXTENDED[Path(name).parent.name]}.{Path(name).stem}" for name in names]
    for module in (*modules, _ALL_AXES) if names else ():
        try:
            importlib.import_module(module)
        except Exception as error:
            # a file of the user's own may fail in any way
            raise HarnessError(
                f"--extra {extra_folder()}: {module} does not load: {type(error).__name__}: {error}",
                hint=_remedy(error),
            ) from error


def _remedy(error: Exception) -> str:
    now = _MOVED.get(error.name or "") if isinstance(error, ModuleNotFoundError) else None
    return f"import from {now} instead" if now else "correct that file, or leave --extra out"
