"""A version of Linux for a guest: the recipe of its kernel, and the versions of OpenZFS that fit.

Each is a file `vmimages/linux/NAME.toml`, named by the suite of Debian that it comes from. Debian keeps
the newest point release of a suite. So a name says the suite, and a record says the exact release.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from torture.checkout import CHECKOUT
from torture.errors import HarnessError
from torture.facts.zfs.versions import ZfsVersion

DEFAULT = "trixie"
"""The kernel of the client, and of a NAS whose ZFS is of that suite."""
FOLDER = CHECKOUT / "vmimages" / "linux"
BACKPORTS = "-backports"
"""The end of the name of a pocket with newer versions of some packages, built for the suite."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinuxVersion:
    """One version, by its name for `--linux`."""

    name: str
    recipe: Path
    series: str
    """The first two numbers of its release, e.g. `6.12`, as far as known before it is built."""

    def is_of(self, suite: str) -> bool:
        """Whether it is of this suite or of its backports."""
        return self.name.removesuffix(BACKPORTS) == suite


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernels:
    """The kernels that both machines boot: by name, or by release once they are built."""

    nas: str = ""
    """Empty: that of the suite which its version of ZFS comes from."""
    client: str = DEFAULT

    @classmethod
    def same(cls, name: str | None) -> Self:
        """The same kernel in both machines; None: each one's default."""
        return cls() if name is None else cls(nas=name, client=name)

    def option_of(self, image: str) -> str:
        """The option of `tools/images` for this image, with a space before; empty for the default."""
        if image == "nas":
            return f" --linux {self.nas}" if self.nas else ""
        return f" --linux {self.client}" if self.client != DEFAULT else ""


DEFAULT_KERNELS = Kernels()


def linux_names() -> tuple[str, ...]:
    """The names of all versions, the default first."""
    names = sorted(path.stem for path in FOLDER.glob("*.toml"))
    return tuple(sorted(names, key=lambda name: name != DEFAULT))


def choices_in_words() -> str:
    """The values of `--linux`, for a message."""
    return f"known are: {', '.join(linux_names())}"


def linux_version(name: str) -> LinuxVersion:
    """The version of this name; raises `HarnessError` for a missing or garbled recipe."""
    recipe = FOLDER / f"{name}.toml"
    if name not in linux_names():
        raise HarnessError(f"no recipe for Linux {name}", hint=choices_in_words())
    try:
        series = tomllib.loads(recipe.read_text())["linux"]["series"]
        _numbers(series)
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise HarnessError(f"{recipe}: {error!r}", hint="mend the recipe") from error
    return LinuxVersion(name=name, recipe=recipe, series=series)


def why_unfit(zfs: ZfsVersion, linux: LinuxVersion) -> str:
    """The reason for which this ZFS does not run in this kernel; empty where it does.

    The bounds are those of the `META` of ZFS, whose configure refuses other kernels. A source tree of
    OpenZFS states its own, and its build fails outside of them.
    """
    if zfs.is_built and not linux.is_of(zfs.suite):
        return f"OpenZFS from source is built on {zfs.suite}, and {linux.name} is of another suite"
    if zfs.suite == linux.name or zfs.linux_bounds is None:
        return ""
    least, most = zfs.linux_bounds
    if _numbers(least) <= _numbers(linux.series) <= _numbers(most):
        return ""
    return (
        f"OpenZFS {zfs.name} supports Linux {least} to {most}, and {linux.name} has {linux.series}"
    )


def _numbers(series: str) -> tuple[int, ...]:
    return tuple(map(int, series.split(".")))
