"""The sources of Debian packages: the host's own apt configuration, with the recipe's suite."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from torture.errors import HarnessError
from torture.facts.linux.kernels import BACKPORTS
from torture.machines.host.abilities import run_host

MIRROR_VARIABLE = "TORTURE_MIRROR"
"""Environment variable: the URI of a Debian archive, for hosts that are not Debian."""

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_DEADLINE_S = 60

_FORMAT = "$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
_RELEASE = re.compile(
    r"(?:bullseye|bookworm|trixie|forky|duke|oldstable|stable|testing|sid|unstable)"
    r"(?P<pocket>|-updates|-security)"
)
# The options that decide whether and how apt reaches a mirror; the host's other options are left
# out.
_TRANSPORT_OPTION = re.compile(
    r"Acquire::(?:\S+::)?"
    r"(?:Proxy|ProxyAutoDetect|Proxy-Auto-Detect|CaInfo|CaPath|SslCert|SslKey|Verify-Peer"
    r"|Verify-Host|Check-Valid-Until|Check-Date|ForceIPv4|ForceIPv6|Retries)"
    r'(?:::\S+)? ".*";',
    re.IGNORECASE,
)


def sources(suite: str, components: Sequence[str], *, with_backports: bool = False) -> list[str]:
    """Lines of a sources.list(5) for this suite, from the host's mirrors.

    Its backports lie in the same archive, whether the host uses them or not.
    Raises `HarnessError` when the host knows no Debian mirror.
    """
    given = os.environ.get(MIRROR_VARIABLE)
    if given:
        found = [(given, "")]
    else:
        command = ("apt-get", "indextargets", "--format", _FORMAT, "Created-By: Packages")
        found = parse_index_targets(_output(command))
    if not any(pocket == "" for _, pocket in found):
        raise HarnessError(
            "this host's apt knows no Debian mirror",
            hint=f"set {MIRROR_VARIABLE} to the URI of a Debian archive and build again",
        )
    if with_backports:
        found += [(uri, BACKPORTS) for uri, pocket in found if pocket == ""]
    options = f"[signed-by={_KEYRING}] " if _KEYRING.exists() else ""
    return [f"deb {options}{uri} {suite}{pocket} {' '.join(components)}" for uri, pocket in found]


def preferences(suite: str, source_packages: Sequence[str]) -> str:
    """apt_preferences(5): these come from the suite's backports, all other packages do not.

    An archive of backports sets `NotAutomatic`, so that all other packages are the suite's own.
    """
    return "\n".join(
        f"Package: src:{name}\nPin: release n={suite}{BACKPORTS}\nPin-Priority: 990\n"
        for name in source_packages
    )


def preferences_of_other_suite(
    pocket: str, source_package: str, *, newest: Sequence[str] = ()
) -> str:
    """apt_preferences(5): this package comes from another suite, or its backports.

    Of the packages `newest` the newer one of both suites is taken. Nothing else comes from there.
    """
    suite = pocket.removesuffix(BACKPORTS)
    # the updates of a suite have a name of their own, which begins with it
    every = f"{suite}*"
    pins = [
        ("*", every, -1),
        (f"src:{source_package}", every if pocket == suite else pocket, 990),
        *((f"src:{name}", every, 500) for name in newest),
    ]
    return "\n".join(
        f"Package: {name}\nPin: release n={release}\nPin-Priority: {priority}\n"
        for name, release, priority in pins
    )


def parse_index_targets(text: str) -> list[tuple[str, str]]:
    """Mirrors of Debian in the output of `apt-get indextargets`: URI and pocket.

    The pocket is "", "-updates" or "-security". A line is `origin|uri|release|component`. The
    origin stays unexpanded until the host has run `apt-get update`; until then release and
    component have to do.
    """
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        origin, _, rest = line.partition("|")
        fields = rest.split("|")
        if len(fields) != 3 or origin not in ("Debian", "$(ORIGIN)"):
            continue
        uri, release, component = fields
        match = _RELEASE.fullmatch(release)
        if match and component == "main" and (uri, match["pocket"]) not in found:
            found.append((uri, match["pocket"]))
    return found


def transport_options() -> list[str]:
    """The host's apt options about proxies, certificates and clocks, as apt.conf(5) lines."""
    return parse_transport_options(_output(("apt-config", "dump")))


def parse_transport_options(text: str) -> list[str]:
    """The lines of `apt-config dump` that describe how to reach a mirror."""
    return [line for line in text.splitlines() if _TRANSPORT_OPTION.fullmatch(line)]


def _output(command: tuple[str, ...]) -> str:
    return run_host(*command, deadline_s=_DEADLINE_S, hint="try `apt-get indextargets` by hand")
