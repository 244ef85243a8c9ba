"""The abilities and lacks of this host for a run, with a fix for each lack. Standard library only.

Each probe examines one item and changes nothing. Its keyword arguments are for tests.

A finding about this host, one sentence each, and its form on the screen.

A failing probe is a lack itself: a traceback of the doctor would report nothing.
"""

from __future__ import annotations

import ctypes
import grp
import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

from torture.errors import HarnessError
from torture.facts.linux.kernels import DEFAULT as DEFAULT_LINUX
from torture.facts.linux.kernels import Kernels, linux_names
from torture.facts.zfs.versions import DEFAULT, version_names
from torture.files import CHECKOUT
from torture.machines.host.abilities import (
    Accelerator,
    NetworkKind,
    choose_network,
    probe_accelerator,
)
from torture.machines.host.native import find_shelf_plugin
from torture.machines.host.scratch import (
    CACHE_VARIABLE,
    USER_NAMESPACES_HINT,
    cache_root,
    default_base,
    sandbox_refusal,
)
from torture.machines.images import IMAGES
from torture.machines.images.build import GuestImage, find
from torture.machines.images.cache import ROOM_BYTES
from torture.machines.images.recipes import image_names, read_recipe
from torture.setup.provision import ENVIRONMENT, environment_is_complete, missing_packages


class State(StrEnum):
    """The meaning of a finding for a run."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; a run works all the same."""
    LACK = "LACK"
    """A run cannot work."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The finding of one probe; `fix` is the command to type or the step to take, required for a lack."""

    state: State
    name: str
    text: str
    fix: str = ""


Probe = Callable[[str], Finding]
"""A probe: takes the name under which its finding is shown."""


def ok(name: str, text: str) -> Finding:
    """A finding that is as it should be."""
    return Finding(state=State.OK, name=name, text=text)


def note(name: str, text: str, fix: str = "") -> Finding:
    """A finding worth knowing."""
    return Finding(state=State.NOTE, name=name, text=text, fix=fix)


def lack(name: str, text: str, fix: str) -> Finding:
    """A finding that keeps a run from working."""
    return Finding(state=State.LACK, name=name, text=text, fix=fix)


def find_all(probes: Mapping[str, Probe]) -> tuple[Finding, ...]:
    """The findings of all probes, in their order; never raises for a failing probe."""
    return tuple(_guarded(name, probe) for name, probe in probes.items())


def _guarded(name: str, probe: Probe) -> Finding:
    try:
        return probe(name)
    except HarnessError as error:
        text, fix = error.message, error.hint
    except Exception as error:
        text, fix = f"{type(error).__name__} while looking: {error}", ""
    return lack(name, text, fix or "repair that, then start tools/doctor again")


def can_run(findings: Iterable[Finding]) -> bool:
    """Whether a run could work."""
    return all(finding.state is not State.LACK for finding in findings)


def in_words(findings: Iterable[Finding]) -> str:
    """A line a finding, its fix indented below it, and the conclusion."""
    shown = tuple(findings)
    width = max((len(finding.name) for finding in shown), default=0)
    lines = []
    for finding in shown:
        text = " ".join(finding.text.split())
        lines.append(f"{finding.state:4}  {finding.name:{width}}  {text}")
        if finding.fix:
            lines.append(f"{'':{width + 8}}fix: {finding.fix}")
    lacks = sum(finding.state is State.LACK for finding in shown)
    lines.append("a run can work" if can_run(shown) else f"lacks: {lacks}; a run cannot work")
    return "\n".join(lines)


PYTHON_MIN = (3, 11)
SCRATCH_BYTES_MIN = 2 * 1024**3
RESULTS_BYTES_MIN = 512 * 1024**2
"""The space that `Run.begin` requires."""
MEMORY_BYTES_MIN = 2 * 1024**3
"""For one trial at a time: a NAS of 768 MiB, a client of 512 MiB, their QEMUs, the disks' pages."""
MEMORY_BYTES_ENOUGH = 4 * 1024**3
SUBORDINATE_IDS_MIN = 65536

_SET_UP = "tools/run --setup-only"
_COMMAND_DEADLINE_S = 10
_APT = "sudo apt-get install --no-install-recommends"
_LIBVIRT_USER = "libvirt-qemu"
_LIBVIRT_DRIVERS = tuple(
    Path(root) for root in ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64")
)
_QEMU = "qemu-system-x86_64"
_BLOCK_DRIVERS = {
    "iscsi": "driver=iscsi,transport=tcp,portal=127.0.0.1:1,target=iqn.2003-01.invalid:none,lun=0",
    "nbd": "driver=nbd,server.type=unix,server.path=/nonexistent/socket",
    "nfs": "driver=nfs,server.type=inet,server.host=127.0.0.1,path=/nonexistent/image",
}
"""Addresses without a server: a driver that is there reports that, a missing driver cannot."""

_VERSIONS_SHOWN = {
    "nas": ("kernel", "zfs"),
    "client": ("kernel", "btrfs-progs", "e2fsprogs", "xfsprogs"),
}


def python(name: str, *, version: tuple[int, ...] = tuple(sys.version_info[:3])) -> Finding:
    """The interpreter that runs the doctor; the virtual environment uses the same one."""
    found = ".".join(map(str, version))
    if version < PYTHON_MIN:
        wanted = ".".join(map(str, PYTHON_MIN))
        return lack(name, f"{found} is too old", f"{_APT} python{wanted}")
    return ok(name, found)


def packages(name: str, *, missing: Callable[[], tuple[str, ...]] = missing_packages) -> Finding:
    """The system packages of `vmimages/host-packages.txt`."""
    if absent := missing():
        return lack(name, f"missing: {' '.join(absent)}", _SET_UP)
    return ok(name, "all installed")


def environment(name: str, *, is_complete: Callable[[], bool] = environment_is_complete) -> Finding:
    """The virtual environment."""
    if is_complete():
        return ok(name, str(ENVIRONMENT))
    text = f"{ENVIRONMENT} is missing, unfinished, or older than pyproject.toml or constraints.txt"
    return lack(name, text, _SET_UP)


def accelerator(
    name: str, *, cpuinfo: Path = Path("/proc/cpuinfo"), kvm: Path = Path("/dev/kvm")
) -> Finding:
    """The accelerator of the guests. Plain emulation is slower, and tests the same."""
    choice = probe_accelerator(cpuinfo=cpuinfo, kvm=kvm)
    found = ok if choice.kind is Accelerator.KVM else note
    return found(name, f"{choice.kind}: {choice.reason}")


def libvirt(
    name: str, *, library: str = "libvirt.so.0", roots: Iterable[Path] = _LIBVIRT_DRIVERS
) -> Finding:
    """The library with its QEMU driver, which the suite embeds; no daemon is needed."""
    try:
        version = _libvirt_version(library)
    except OSError as error:
        return lack(name, f"not found: {error}", f"{_APT} libvirt-daemon")
    driver = "libvirt/connection-driver/libvirt_driver_qemu.so"
    if not any([*root.glob(driver), *root.glob(f"*/{driver}")] for root in roots):
        text = f"{version}, but without its QEMU driver ({driver})"
        fix = f"{_APT} libvirt-daemon libvirt-daemon-driver-qemu"
        return lack(name, text, fix)
    return ok(name, f"{version}, with its QEMU driver")


def _libvirt_version(library: str) -> str:
    """The version from the library itself (virGetVersion): its Python binding may be missing still."""
    number = ctypes.c_ulong()
    if ctypes.CDLL(library).virGetVersion(ctypes.byref(number), None, None) != 0:
        raise OSError(f"{library} does not report its version")
    return f"{number.value // 1_000_000}.{number.value // 1000 % 1000}.{number.value % 1000}"


def libvirt_user(name: str, *, user: str = _LIBVIRT_USER) -> Finding:
    """The privileged QEMU driver reads its default user and group before its configuration."""
    try:
        pwd.getpwnam(user)
        grp.getgrnam(user)
    except KeyError:
        return lack(
            name,
            f"no user and group {user}: Debian's libvirt refuses to start QEMU without",
            f"{_APT} libvirt-daemon-system; or sudo useradd --system --user-group {user}",
        )
    return ok(name, f"{user} exists, as Debian's libvirt needs")


def qemu(name: str, *, binary: str = _QEMU) -> Finding:
    """The emulator."""
    if shutil.which(binary) is None:
        return lack(name, f"no {binary}", f"{_APT} qemu-system-x86")
    return ok(name, _version(_output_of(binary, "--version")))


def block_drivers(
    name: str, *, binary: str = _QEMU, drivers: Mapping[str, str] = _BLOCK_DRIVERS
) -> Finding:
    """The block drivers by which QEMU reaches the shelf and the NAS.

    The probe loads each driver: QEMU lists a driver even when its module file is missing.
    """
    if shutil.which(binary) is None:
        return lack(name, f"no {binary}", f"{_APT} qemu-system-x86 qemu-block-extra")
    absent = [driver for driver, options in drivers.items() if not _loads(binary, options)]
    if absent:
        text = f"{binary} has no block driver {', '.join(absent)}"
        return lack(name, text, f"{_APT} qemu-block-extra")
    return ok(name, f"{', '.join(drivers)} load")


def _loads(binary: str, options: str) -> bool:
    output = _output_of(
        binary, "-machine", "none", "-nodefaults", "-display", "none",
        "-blockdev", f"{options},node-name=probe",
    )  # fmt: skip
    return "Unknown driver" not in output and "does not accept value" not in output


def shelf(
    name: str, *, binary: str = "nbdkit", plugin: Callable[[], Path | None] = find_shelf_plugin
) -> Finding:
    """The disk shelf: nbdkit, and the suite's plugin of it."""
    if shutil.which(binary) is None:
        return lack(name, f"no {binary}", f"{_APT} nbdkit")
    built = plugin()
    if built is None:
        return lack(name, "its plugin is not built", _SET_UP)
    output = _output_of(binary, "--dump-plugin", str(built))
    if "name=shelf" not in output:
        return lack(name, f"{binary} cannot load {built}: {output.strip()}", _SET_UP)
    return ok(name, f"nbdkit {_version(_output_of(binary, '--version'))} with {built}")


def namespaces(name: str, *, refusal: Callable[[], str | None] = sandbox_refusal) -> Finding:
    """The namespaces in which each worker is sandboxed."""
    refused = refusal()
    if refused is None:
        return ok(name, "network, mount and process namespaces")
    reason, _, hint = refused.partition("\n  next: ")
    return lack(name, reason, hint or USER_NAMESPACES_HINT)


def network(name: str, *, tun: Path = Path("/dev/net/tun")) -> Finding:
    """The network of the NAS; the user-mode stack needs nothing, and tests the same."""
    choice = choose_network(tun=tun)
    found = ok if choice.kind is NetworkKind.BRIDGE else note
    return found(name, f"{choice.kind}: {choice.reason}")


def subordinate_ids(
    name: str, *, user: str | None = None, uid: int | None = None, table: Path = Path("/etc/subuid")
) -> Finding:
    """The subordinate IDs that mmdebstrap needs for a user other than root (subuid(5))."""
    uid = os.getuid() if uid is None else uid
    if uid == 0:
        return ok(name, "root needs none")
    user = user or pwd.getpwuid(uid).pw_name
    lines = table.read_text().splitlines() if table.exists() else []
    ranges = [line.split(":") for line in lines if line.count(":") == 2]
    if any(
        owner in (user, str(uid)) and count.isdecimal() and int(count) >= SUBORDINATE_IDS_MIN
        for owner, _, count in ranges
    ):
        return ok(name, f"{user} has a range in {table}")
    return note(
        name,
        f"{user} has no range of {SUBORDINATE_IDS_MIN} in {table}; only building images needs it",
        f"sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}",
    )


def memory(name: str, *, meminfo: Path = Path("/proc/meminfo")) -> Finding:
    """The memory available for guests, the disks' pages included."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)
    if found is None:
        raise HarnessError(f"{meminfo} lacks MemAvailable", hint=f"cat {meminfo}")
    available = int(found[1]) * 1024
    text = f"{_gib(available)} available"
    if available < MEMORY_BYTES_MIN:
        text += f", one trial needs {_gib(MEMORY_BYTES_MIN)}"
        return lack(name, text, "end other programs")
    if available < MEMORY_BYTES_ENOUGH:
        text += f", two trials at once need {_gib(MEMORY_BYTES_ENOUGH)}"
        return note(name, text, "run with --jobs 1")
    return ok(name, text)


def scratch(name: str, *, base: Callable[[], Path] = default_base) -> Finding:
    """The place of the disks of running trials."""
    return _room(name, base(), SCRATCH_BYTES_MIN, "run with --scratch DIR")


def results(name: str, *, folder: Path = CHECKOUT / "results") -> Finding:
    """The place of runs."""
    return _room(name, folder, RESULTS_BYTES_MIN, "run with --results DIR")


def image_cache(
    name: str, *, root: Path | None = None, look: Callable[[str], GuestImage | None] = find
) -> Finding:
    """Room for a build, needed only while an image is missing."""
    is_built = all(look(image) is not None for image in IMAGES)
    folder = root or cache_root()
    elsewhere = f"export {CACHE_VARIABLE}=DIR"
    return _room(name, folder, 0 if is_built else ROOM_BYTES, elsewhere)


def _room(name: str, folder: Path, needed_bytes: int, elsewhere: str) -> Finding:
    """Whether a folder, or its future parent, is writable and has room."""
    place = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(place, os.W_OK | os.X_OK):
        return lack(name, f"{place} is closed to this user", elsewhere)
    free = shutil.disk_usage(place).free
    text = f"{folder}: {_gib(free)} free"
    if free < needed_bytes:
        text += f", {_gib(needed_bytes)} are needed"
        return lack(name, text, f"free some space, or: {elsewhere}")
    return ok(name, text)


def image(name: str, *, of: str, look: Callable[[str], GuestImage | None] = find) -> Finding:
    """A guest image of the present recipe, and its versions."""
    built = look(of)
    if built is None:
        return lack(name, "not built", _SET_UP)
    shown = _VERSIONS_SHOWN.get(of, ("kernel",))
    versions = ", ".join(f"{what} {built.manifest.get(what, 'unknown')}" for what in shown)
    return ok(name, f"{built.key}: {versions}")


PROBES: Mapping[str, Probe] = {
    "Python": python,
    "system packages": packages,
    "environment": environment,
    "accelerator": accelerator,
    "libvirt": libvirt,
    "libvirt's user": libvirt_user,
    "QEMU": qemu,
    "QEMU's drivers": block_drivers,
    "disk shelf": shelf,
    "namespaces": namespaces,
    "network": network,
    "subordinate ids": subordinate_ids,
    "memory": memory,
    "scratch": scratch,
    "results": results,
    "image cache": image_cache,
    **{f"image {name}": partial(image, of=name) for name in IMAGES},
}


def examine() -> tuple[Finding, ...]:
    """The findings of all probes, in their order; never raises for a failing probe."""
    return find_all(PROBES)


def _output_of(*argv: str) -> str:
    """All output of a command; its exit code does not matter here."""
    completed = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=_COMMAND_DEADLINE_S,
        check=False,
    )
    return completed.stdout + completed.stderr


def _version(output: str) -> str:
    found = re.search(r"\d+(\.\d+)+", output)
    return found.group() if found else "of no known version"


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 1024**3:.1f} GiB"


def folder_of(name: str) -> Path:
    """The folder of a finished image; raises `HarnessError` when it is not built."""
    image = find(name)
    if image is None:
        raise HarnessError(f"image {name!r} is not built", hint=f"tools/images build {name}")
    return image.root.parent


def built_in_words() -> Iterator[str]:
    """A line for every image of the present recipes, and for each version of ZFS that has its own.

    Of other kernels it lists the images that are built.
    """
    for name in image_names():
        for zfs in version_names() if read_recipe(name).follows_zfs else (DEFAULT,):
            if (image := find(name, zfs=zfs)) is None:
                yield f"{name:16} not built; next: tools/images build {name} --zfs {zfs}"
            else:
                yield _line(name, image)
        for linux in linux_names():
            with suppress(HarnessError):  # not every ZFS runs in every kernel
                image = find(name, linux=Kernels.same(linux))
                if image is not None and linux != DEFAULT_LINUX:
                    yield _line(name, image)


def _line(name: str, image: GuestImage) -> str:
    size_mib = image.root.stat().st_size / 1024**2
    versions = f"kernel {image.manifest['kernel']}, zfs {image.manifest['zfs']}"
    return f"{name:16} {image.key}  {size_mib:.0f} MiB  {versions}, content {image.sha256[:16]}"
