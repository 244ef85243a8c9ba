"""The recipes of the guest images, read from `vmimages/`, and the keys that name what they give."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from torture.checkout import CHECKOUT
from torture.errors import HarnessError

RECIPES = CHECKOUT / "vmimages"

KERNEL = "kernel"
"""The stage every image takes its kernel and modules from."""

BASE_FORMAT = 1
"""Part of every base's key. Raise it when `bases.py` begins to call mmdebstrap differently."""

_KEY_CHARS = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """One folder of `vmimages/`: Debian packages (slow layer) and our own files (quick layer)."""

    name: str
    suite: str
    components: tuple[str, ...]
    packages: tuple[str, ...]
    stage: Path | None
    """Script run in the root of the packages; it leaves `/stage.tar`, which becomes the base."""
    files: tuple[Path, ...] = ()
    """Folders copied over the root, in this order."""
    python: tuple[tuple[Path, str], ...] = ()
    """Python packages to compile and install: folder on the host, path in the guest."""
    udev_rules: tuple[str, ...] = ()
    """The only rule files of udev that stay; without any, all do."""
    initrd_modules: tuple[str, ...] = ()

    @property
    def base_key(self) -> str:
        """Names the slow layer: changes with the packages and the stage script, nothing else."""
        said = {
            "format": BASE_FORMAT,
            "suite": self.suite,
            "components": self.components,
            "packages": self.packages,
        }
        parts = [json.dumps(said, sort_keys=True).encode()]
        if self.stage:
            parts.append(self.stage.read_bytes())
        return _digest(parts)

    @property
    def image_key(self) -> str:
        """Names the image: its base, the kernel's, our files, and the code that joins them."""
        trees = [*self.files, *(tree for tree, _ in self.python), RECIPES / "boot"]
        parts = [self.base_key.encode(), read_recipe(KERNEL).base_key.encode()]
        parts.append((RECIPES / self.name / "recipe.toml").read_bytes())
        parts.append((RECIPES / KERNEL / "recipe.toml").read_bytes())
        for path in sorted(Path(__file__).parent.glob("*.py")):
            parts.append(path.read_bytes())
        for tree in trees:
            for path in tree_files(tree):
                executable = path.stat().st_mode & 0o100
                parts.append(f"{path.relative_to(tree)} {executable}".encode())
                parts.append(path.read_bytes())
        return _digest(parts)


def read_recipe(name: str) -> Recipe:
    """The recipe of this name; raises `HarnessError` when there is none or it does not parse."""
    folder = RECIPES / name
    path = folder / "recipe.toml"
    try:
        said = tomllib.loads(path.read_text())
    except FileNotFoundError:
        known = ", ".join(sorted(found.parent.name for found in RECIPES.glob("*/recipe.toml")))
        raise HarnessError(f"no recipe for an image {name!r}", hint=f"known are: {known}") from None
    except tomllib.TOMLDecodeError as error:
        raise HarnessError(f"{path}: {error}", hint="mend the recipe") from error
    stage = folder / "stage.sh"
    try:
        recipe = Recipe(
            name=name,
            suite=said.pop("suite"),
            components=tuple(said.pop("components")),
            packages=tuple(said.pop("packages")),
            stage=stage if stage.exists() else None,
            files=tuple(RECIPES / tree for tree in said.pop("files", ())),
            python=tuple((RECIPES / one["from"], one["to"]) for one in said.pop("python", ())),
            udev_rules=tuple(said.pop("udev_rules", ())),
            initrd_modules=tuple(said.pop("initrd_modules", ())),
        )
    except KeyError as error:
        raise HarnessError(f"{path}: {error} is missing", hint="mend the recipe") from error
    if said:
        raise HarnessError(f"{path}: not known: {', '.join(said)}", hint="mend the recipe")
    return recipe


def tree_files(tree: Path) -> list[Path]:
    """The regular files below a folder, sorted, without what Python left there."""
    return [
        path
        for path in sorted(tree.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()[:_KEY_CHARS]
