"""The slow layer: Debian packages in a tar archive, made by mmdebstrap, as root or rootless."""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event

from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.linux.kernels import BACKPORTS
from torture.machines.host.abilities import run_host
from torture.machines.images import bases
from torture.machines.images.assemble import SOURCE_DATE_EPOCH
from torture.machines.images.recipes import Recipe
from torture.machines.images.source_trees import NO_PATCHES, PatchSeries, SourceTree

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


BUILD_DEADLINE_S = 90 * 60
"""A kernel from a source tree takes twenty minutes on two processors."""
_LOG_TAIL_LINES = 12
_POLL_S = 0.1
# The wording of apt, dpkg and tar.
_FULL_DISK = ("No space left on device", "enough free space")
_SOURCE = "source.tar"
_LINUX_SOURCE = "linux.tar"
_SUPPLIED = {
    _SOURCE: "tools/images build --zfs PATH, or NAME --tree scst=PATH",
    _LINUX_SOURCE: "--linux PATH",
}
"""How a user supplies a source tree, by its archive in the build."""
_PATCHES = "patches"
_COMPILED = "compiled.tar"
_COMPILED_PATH = "/compiled"
_WITH_CCACHE = (
    "cp -a /usr/lib/ccache/. /usr/local/bin/ && "
    f"printf '%s\\n' 'cache_dir = {_COMPILED_PATH}' 'max_size = 1G' > /etc/ccache.conf"
)
"""Shell: compile by ccache, whose names of compilers come first in the path (ccache(1), "Run modes").
Most files of a tree are those of the tree before it."""
_DKMS = "/etc/dkms"
_PROGRAMS = "/programs"
_PREFERENCES = "/etc/apt/preferences.d/"
_ZFS = "zfs-linux"
"""Debian's source package of OpenZFS."""
_BUILDERS = ("dkms",)
"""A newer ZFS needs them to be as new as in its own suite."""
_SUBUID = Path("/etc/subuid")

# Not installed at all, so that it costs neither time nor room in the archive.
_NOT_INSTALLED = ("doc", "info", "locale", "man")


# The beginnings of those lines of mmdebstrap's log that a waiting user wants to see.
_STEPS = ("running ", "downloading ", "extracting ", "installing ", "creating ", "cleaning ")


def build_base(
    recipe: Recipe,
    work: Path,
    *,
    log: Path,
    progress: Callable[[str], None],
    stop: Event,
    keep: int,
    compiled: Path | None = None,
    trees: Sequence[SourceTree] = (),
    patches: PatchSeries = NO_PATCHES,
) -> None:
    """Write `base.tar` and `packages.json` (name to version) into the folder `work`.

    The build's processes hold the descriptor `keep` open. `trees` has the source trees that the
    recipe's stages build, and `patches` are those that they apply, if they do so. The archive
    `compiled` has the compilers' cache of earlier trees, and gets this one's. Raises `HarnessError`
    with the log's last lines when mmdebstrap fails, and when `stop` is set meanwhile.
    """
    for version, archive in ((recipe.source, _SOURCE), (recipe.linux_source, _LINUX_SOURCE)):
        if version:
            _pack(trees, version, work / archive)
    if recipe.patches:
        _pack_patches(patches, recipe.patches, work)
    command = _command(recipe, work, compiled)
    environment = os.environ | {
        "SOURCE_DATE_EPOCH": str(SOURCE_DATE_EPOCH),
        "DEBIAN_FRONTEND": "noninteractive",
        "LC_ALL": "C.UTF-8",
        "TMPDIR": str(_scratch(work)),
    }
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
            pass_fds=(keep,),
            start_new_session=True,
        )
        try:
            code = _follow(process, log, recipe.name, progress, stop)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if code:
        tail = _tail(log)
        full = any(words in tail for words in _FULL_DISK)
        raise HarnessError(
            f"building the base of {recipe.name!r} failed with exit code {code};"
            f" the end of {log}:\n{tail}",
            hint=f"make room below {work}, then: tools/images build"
            if full
            else f"read {log}, then: tools/images build",
        )
    if recipe.has_tree and compiled:
        (work / _COMPILED).replace(compiled)
    for archive in (_SOURCE, _LINUX_SOURCE):
        (work / archive).unlink(missing_ok=True)
    shutil.rmtree(work / _PATCHES, ignore_errors=True)
    status = work / "status"
    packages = parse_dpkg_status(status.read_text())
    (work / "packages.json").write_text(json.dumps(packages, indent=1, sort_keys=True))
    status.unlink()


def parse_dpkg_status(text: str) -> dict[str, str]:
    """Package to version, from the text of dpkg's `status` file."""
    packages: dict[str, str] = {}
    for paragraph in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line)
        if fields.get("Status", "").endswith(" installed"):
            packages[fields["Package"]] = fields["Version"]
    return packages


def _pack(trees: Sequence[SourceTree], version: str, archive: Path) -> None:
    tree = next((tree for tree in trees if tree.version == version), None)
    if tree is None:
        raise HarnessError(
            f"{version} is built from a source tree, and is not built yet{_brought(trees)}",
            hint=f"{_SUPPLIED[archive.name]}, with that source tree unchanged",
        )
    tree.pack(archive)


def _brought(trees: Sequence[SourceTree]) -> str:
    names = ", ".join(tree.version for tree in trees)
    return f" (there are {names})" if names else ""


def _pack_patches(patches: PatchSeries, digest: str, work: Path) -> None:
    if patches.digest != digest:
        raise HarnessError(
            f"Linux with the patches {digest} is not built yet",
            hint="--patch FILE, with those patches unchanged",
        )
    patches.pack(work / _PATCHES)


def _command(recipe: Recipe, work: Path, compiled: Path | None) -> list[str]:
    if shutil.which("mmdebstrap") is None:
        raise HarnessError("mmdebstrap is not installed", hint="apt-get install mmdebstrap")
    archive = work / "base.tar"
    command = [
        *_contained(),
        "mmdebstrap",
        f"--mode={_mode()}",
        "--variant=essential",
        "--architectures=amd64",
        f"--include={','.join(recipe.packages)}",
        '--aptopt=APT::Install-Recommends "false"',
    ]
    command += [f"--aptopt={option}" for option in bases.transport_options()]
    command += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _NOT_INSTALLED]
    if recipe.backports:
        command += _pinned("backports", bases.preferences(recipe.suite, recipe.backports))
    if recipe.zfs_from:
        pins = bases.preferences_of_other_suite(recipe.zfs_from, _ZFS, newest=_BUILDERS)
        command += _pinned("zfs", pins)
    if recipe.source:
        command += [f"--customize-hook=upload {work / _SOURCE} /source.tar"]
    if recipe.linux_source:
        command += [f"--customize-hook=upload {work / _LINUX_SOURCE} /linux.tar"]
    if recipe.has_tree and compiled:
        command += [f"--chrooted-customize-hook={_WITH_CCACHE}"]
        if compiled.exists():
            command += [f"--customize-hook=tar-in {compiled} /"]
    if recipe.patches:
        command += [f"--customize-hook=copy-in {work / _PATCHES} /"]
    if recipe.patch is not None:
        # dkms's postinst would build the modules, for minutes, before they are patched
        command += [
            f'--setup-hook=mkdir -p "$1{_DKMS}" && touch "$1{_DKMS}/no-autoinstall"',
            f"--customize-hook=upload {recipe.patch} /planted.patch",
        ]
    if recipe.programs:
        command += [f'--customize-hook=mkdir "$1{_PROGRAMS}"']
    for program in recipe.programs:
        command += [f"--customize-hook=upload {program} {_PROGRAMS}/{program.name}"]
    for stage in recipe.stages:
        command += [
            f"--customize-hook=upload {stage} /stage.sh",
            "--chrooted-customize-hook=sh /stage.sh",
        ]
    if recipe.has_tree and compiled:
        command += [f"--customize-hook=tar-out {_COMPILED_PATH} {work / _COMPILED}"]
    if recipe.stages:
        command += [f"--customize-hook=download /stage.tar {archive}"]
    command += [f"--customize-hook=download /var/lib/dpkg/status {work / 'status'}"]
    command += [recipe.suite, "/dev/null" if recipe.stages else str(archive)]
    return command + _sources(recipe)


def _pinned(name: str, preferences: str) -> list[str]:
    return [f'--setup-hook=printf %s {shlex.quote(preferences)} > "$1{_PREFERENCES}{name}"']


def _sources(recipe: Recipe) -> list[str]:
    lines = bases.sources(recipe.suite, recipe.components, with_backports=bool(recipe.backports))
    if recipe.zfs_from:
        lines += bases.sources(
            recipe.zfs_from.removesuffix(BACKPORTS),
            recipe.components,
            with_backports=recipe.zfs_from.endswith(BACKPORTS),
        )
    return lines


def _contained() -> list[str]:
    """A prefix with which a killed build loses all its processes and mounts."""
    alone = ["setpriv", "--pdeathsig", "KILL", "--"]
    if os.getuid() == 0:
        return [*alone, "unshare", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child"]
    return alone


def _mode() -> str:
    """The way in which mmdebstrap may make files of other owners here."""
    if os.getuid() == 0:
        return "root"
    user = pwd.getpwuid(os.getuid()).pw_name
    owners = _SUBUID.read_text().splitlines() if _SUBUID.exists() else []
    if any(line.split(":")[0] in (user, str(os.getuid())) for line in owners):
        return "unshare"
    raise HarnessError(
        f"{user} is not root and has no range in {_SUBUID}, so it cannot build images",
        hint=f"sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}\n"
        "    or build as root and point TORTURE_CACHE to that cache",
    )


def _scratch(work: Path) -> Path:
    """The folder in which mmdebstrap unpacks: rootless, it needs a place that other users may pass."""
    return work if os.getuid() == 0 else Path("/var/tmp")


def _follow(
    process: subprocess.Popen[bytes],
    log: Path,
    name: str,
    progress: Callable[[str], None],
    stop: Event,
) -> int:
    """Wait for the build's end, reporting mmdebstrap's steps ("I: ..."); return its exit code."""
    start = time.monotonic()
    with log.open(errors="replace") as lines:
        while True:
            code = process.poll()
            for line in lines:  # from the end of the last round
                step = line.strip().removeprefix("I: ").removesuffix("...")
                if step.startswith(_STEPS):
                    progress(f"{name}: {step} ({time.monotonic() - start:.0f} s)")
            if code is not None:
                return code
            if stop.wait(_POLL_S):
                raise HarnessError(f"the build of {name!r} was stopped", hint="tools/images build")
            if time.monotonic() - start > BUILD_DEADLINE_S:
                raise DeadlineExceeded(
                    f"the build of {name!r} took longer than {BUILD_DEADLINE_S} s;"
                    f" the end of {log}:\n{_tail(log)}",
                    hint="check whether the mirror answers, then: tools/images build",
                )


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
    return "\n".join(f"  | {line}" for line in lines)
