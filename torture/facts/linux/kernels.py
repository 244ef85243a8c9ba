"""A version of Linux for a guest: the recipe of its kernel, and the versions of OpenZFS that fit.

Each is a file `vmimages/linux/NAME.toml`, named by the suite of Debian that it comes from. Debian keeps
the newest point release of a suite. So a name says the suite, and a record says the exact release.

Patches to its modules make another version, whose name has a hash of them: `trixie+0123456789ab`. A
build from a source tree is a version, too: `7.3.4-0123456789ab`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from torture.errors import HarnessError
from torture.facts.zfs.versions import ZfsVersion
from torture.files import CHECKOUT

DEFAULT = "trixie"
"""The kernel of the client, and of a NAS whose ZFS is of that suite."""
FOLDER = CHECKOUT / "vmimages" / "linux"
BACKPORTS = "-backports"
"""The end of the name of a pocket with newer versions of some packages, built for the suite."""

HASH_CHARS = 12
_SERIES = r"\d{1,3}\.\d{1,3}"
_NAME = re.compile(
    rf"(?P<base>[a-z-]+)(?:\+(?P<patches>[0-9a-f]{{{HASH_CHARS}}}))?"
    rf"|(?P<built>(?P<series>{_SERIES})\.\d{{1,3}}-[0-9a-f]{{{HASH_CHARS}}})"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LinuxVersion:
    """One version, by its name for `--linux`."""

    name: str
    base: str
    """The name of its recipe: the same, without patches."""
    patches: str
    """The digest of the patches to its modules; empty without any."""
    recipe: Path
    suite: str
    """Debian's suite in which it is built."""
    series: str
    """The first two numbers of its release, e.g. `6.12`, as far as known before it is built."""
    is_built: bool
    """Whether it is built from a source tree, which is needed only for the build."""


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
        if image.partition("_")[0] == "nas":
            return f" --linux {self.nas}" if self.nas else ""
        return f" --linux {self.client}" if self.client != DEFAULT else ""


DEFAULT_KERNELS = Kernels()


def linux_names() -> tuple[str, ...]:
    """The names of all versions, the default first."""
    names = sorted(path.stem for path in FOLDER.glob("*.toml"))
    return tuple(sorted(names, key=lambda name: name != DEFAULT))


def choices_in_words() -> str:
    """The values of `--linux`, for a message."""
    return f"known are: {', '.join(linux_names())}, and folders with a source tree of Linux"


def linux_version(name: str) -> LinuxVersion:
    """The version of this name; raises `HarnessError` for a missing or garbled recipe."""
    said = _NAME.fullmatch(name)
    built = None if said is None else said["built"]
    if said is None or (built is None and said["base"] not in linux_names()):
        raise HarnessError(f"no recipe for Linux {name}", hint=choices_in_words())
    recipe = FOLDER / ("source/recipe.toml" if built else f"{said['base']}.toml")
    try:
        content = tomllib.loads(recipe.read_text())
        suite, series = str(content["suite"]), said["series"] or content["linux"]["series"]
        _numbers(series)
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise HarnessError(f"{recipe}: {error!r}", hint="mend the recipe") from error
    return LinuxVersion(
        name=name,
        base=said["base"] or name,
        patches=said["patches"] or "",
        recipe=recipe,
        suite=suite,
        series=series,
        is_built=built is not None,
    )


def name_of_source(version: str, digest: str) -> str:
    """The name of the version built from a tree of this version, with a hash of its content."""
    return f"{version}-{digest[:HASH_CHARS]}"


def choose_kernels(
    zfs: ZfsVersion,
    *,
    both: str | None,
    nas: str | None = None,
    client: str | None = None,
    patches: str = "",
) -> Kernels:
    """The kernels that a user names for both machines, or for one, with the digest of patches.

    Patches are of the kernels that the user names, or of both where none is named.
    """
    chosen = Kernels(nas=nas or both or "", client=client or both or DEFAULT)
    if not patches:
        return chosen
    is_of_both = both is not None or (nas is None and client is None)
    return Kernels(
        nas=f"{chosen.nas or zfs.suite}+{patches}" if nas or is_of_both else chosen.nas,
        client=f"{chosen.client}+{patches}" if client or is_of_both else chosen.client,
    )


def why_unfit(zfs: ZfsVersion, linux: LinuxVersion) -> str:
    """The reason for which this ZFS does not run in this kernel; empty where it does.

    The bounds are those of the `META` of ZFS, whose configure refuses other kernels. A source tree of
    OpenZFS states its own, and its build fails outside of them.
    """
    if zfs.is_built and linux.suite != zfs.suite:
        return f"OpenZFS from source is built on {zfs.suite}, and {linux.base} is of another suite"
    if zfs.suite == linux.base or zfs.linux_bounds is None:
        return ""
    least, most = zfs.linux_bounds
    if _numbers(least) <= _numbers(linux.series) <= _numbers(most):
        return ""
    return (
        f"OpenZFS {zfs.name} supports Linux {least} to {most}, and {linux.base} has {linux.series}"
    )


def _numbers(series: str) -> tuple[int, ...]:
    return tuple(map(int, series.split(".")))
