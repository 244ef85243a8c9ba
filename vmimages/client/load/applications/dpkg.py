"""dpkg: each writer has a root of its own, and installs packages that identify themselves.

dpkg syncs each file before it gives it its name (dpkg(1), `--force-unsafe-io`). It also syncs its
database with the names in it (`dir_sync_path` in its `lib/dpkg/dir.c`). It does not sync the names
of a package's files. So the writer syncs them, and only then acknowledges the installation.

A package's version number is the transaction's, and its description lists the earlier ones. So a
root with the last package has had all of them.

While it unpacks an upgrade, dpkg's status of the package is `half-configured`, `unpacked` and
`half-installed`, still with the old version and description. The status of a package that was not
installed is `half-installed`, without a description. From `unpacked` on it has the new ones
(`process_archive` in its `src/main/unpack.c`).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile
import time
from functools import partial

from . import (
    TRANSACTION,
    Application,
    ApplicationError,
    Performer,
    Transaction,
    TransactionPlanner,
    found_of_each,
    unfinished_work,
)
from ._programs import checked_output, run_program, sync_names, words_of, write_file
from .rows import payload_of

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    import subprocess
    from typing import Any

_ADMIN = "var/lib/dpkg"
_FORCES = ("--force-not-root", "--force-bad-path", "--no-force-unsafe-io")
"""These override the configuration; the package has no scripts, so no program of the root runs."""
_PACKAGES = 4
_FILES_MAX = 3
_BYTES_MAX = 20_000
_FORMAT = "${Package}\\t${Version}\\t${db:Status-Status}\\t${Description}\\n"
_LOOKED = (0, 1)
"""The exit codes of dpkg after a completed look, with or without findings; others are failures."""
_INSTALLED, _HALF_INSTALLED = "installed", "half-installed"
_AMBIGUOUS_STATES = ("half-configured", "unpacked")
"""The states of a package both before dpkg unpacks a newer version and after that."""


class _Planner(TransactionPlanner):
    def draw(self) -> Transaction:
        package = f"load{self.writer}-{self.dice.below(_PACKAGES)}"
        sizes = [1 + self.dice.below(_BYTES_MAX) for _ in range(1 + self.dice.below(_FILES_MAX))]
        return Transaction(kind=TRANSACTION, what={"package": package, "sizes": sizes})


class _Performer(Performer):
    def __init__(self, application: Dpkg, writer: int) -> None:
        super().__init__()
        self._application = application
        self._root = application.root(writer)
        self._installed: dict[str, list[int]] = {}

    def perform(self, transaction: Transaction, seq: int) -> None:
        package, sizes = transaction.what["package"], transaction.what["sizes"]
        before = self._installed.setdefault(package, [])
        with tempfile.TemporaryDirectory() as elsewhere:
            archive = f"{elsewhere}/{package}.deb"
            write_file(
                archive, package_file(self._application.job["trial"], package, seq, sizes, before)
            )
            begun_ns = time.monotonic_ns()
            try:
                self.step = "dpkg --install"
                checked_output(dpkg(self._root, "--install", archive))
                self.step = "fsync"
                sync_names((f"{self._root}/usr/share/{package}", f"{self._root}/usr/share"))
            except ApplicationError as error:
                self.step = f"{self.step}: {error}"
                raise
        before.append(seq)
        self.durable_call_took(begun_ns)


def dpkg(root: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run dpkg in a root of its own."""
    return run_program(["dpkg", f"--root={root}", *_FORCES, "--log=/dev/null", *arguments])


def package_file(trial: int, package: str, seq: int, sizes: list[int], before: list[int]) -> bytes:
    """A package like dpkg-deb's, `deb(5)`, uncompressed, in a fraction of the time."""
    files = {
        f"usr/share/{package}/f{number}": payload_of(trial, seq, number, size)
        for number, size in enumerate(sizes)
    }
    sums = "".join(f"{hashlib.md5(data).hexdigest()}  {name}\n" for name, data in files.items())
    control = (
        f"Package: {package}\nVersion: {seq}\nArchitecture: all\nMaintainer: load <load@load.invalid>\n"
        f"Description: {json.dumps({'before': before, 'sizes': sizes})}\n"
    )
    members = {
        "debian-binary": b"2.0\n",
        "control.tar": _tar({"control": control.encode(), "md5sums": sums.encode()}),
        "data.tar": _tar(files),
    }
    archive = b"!<arch>\n"
    for name, data in members.items():
        header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n"
        archive += header.encode() + data + b"\n" * (len(data) % 2)
    return archive


def _amid(package: str, seq: int, state: str, *, is_first: bool = False) -> dict[str, Any]:
    """Which version is being installed, or which one is being replaced."""
    return unfinished_work(
        seq,
        what={"package": package},
        state=state,
        is_new=is_first or state in _AMBIGUOUS_STATES,
        is_old=not is_first and state in (_HALF_INSTALLED, *_AMBIGUOUS_STATES),
    )


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        folders = {name[:at] for name in files for at, letter in enumerate(name) if letter == "/"}
        for name in sorted(folders | files.keys()):
            entry = tarfile.TarInfo(f"./{name}")
            entry.uid, entry.gid = os.getuid(), os.getgid()
            entry.mode = 0o644 if name in files else 0o755
            entry.type = tarfile.REGTYPE if name in files else tarfile.DIRTYPE
            entry.size = len(files.get(name, b""))
            tar.addfile(entry, io.BytesIO(files.get(name, b"")))
    return buffer.getvalue()


class Dpkg(Application):
    """Its roots are folders of one directory."""

    def root(self, writer: int) -> str:
        """The path of a writer's root."""
        return f"{self.directory}/{writer}"

    def prepare(self) -> None:
        """Make a root without packages for each writer."""
        for writer in range(self.job["writers"]):
            admin = f"{self.root(writer)}/{_ADMIN}"
            for folder in ("info", "updates", "triggers"):
                os.makedirs(f"{admin}/{folder}")  # noqa: PTH103 - pathlib is slow to import
            os.makedirs(f"{self.root(writer)}/usr/share")  # noqa: PTH103
            for name in ("status", "available"):
                write_file(f"{admin}/{name}", b"")

    def planner(self, writer: int) -> TransactionPlanner:
        """Packages for the first time, and newer versions of them."""
        return _Planner(self.job, writer)

    def performer(self, writer: int) -> Performer:
        """One installation after another: dpkg locks its root."""
        return _Performer(self, writer)

    def read(self) -> dict[str, Any]:
        """The installed packages and their files, and the output of `--audit` and `--verify`."""
        unfinished: list[dict[str, Any]] = []
        return found_of_each(
            self.job["writers"],
            partial(self._read_one, unfinished),
            noun="root",
            errors=(OSError, ValueError),
            unfinished=unfinished,
        )

    def _read_one(
        self,
        unfinished: list[dict[str, Any]],
        writer: int,
        whole: list[int],
        parts: dict[int, str],
        complaints: list[str],
    ) -> None:
        root = self.root(writer)
        os.stat(f"{root}/{_ADMIN}/status")  # noqa: PTH116 - without one nothing is installed
        query = ["dpkg-query", f"--admindir={root}/{_ADMIN}", "--show", f"--showformat={_FORMAT}"]
        said = checked_output(run_program(query)).decode()
        versions = {}
        installed = set()
        for line in said.splitlines():
            package, version, state, description = line.split("\t")
            seq = versions[package] = int(version)
            if state == _HALF_INSTALLED and not description:
                unfinished.append(_amid(package, seq, state, is_first=True))
                continue
            before, sizes = _described(description)
            whole += before
            if state != _INSTALLED:
                unfinished.append(_amid(package, seq, state))
                continue
            installed.add(package)
            if wrong := self._wrong_with(root, package, seq, sizes):
                parts[seq] = f"{package}: {wrong}"
            else:
                whole.append(seq)
        self._check(root, versions.keys() - installed, versions, parts, complaints)

    def _wrong_with(self, root: str, package: str, seq: int, sizes: list[int]) -> str:
        """The difference between an installed package's files and the packaged ones, if any."""
        directory = f"{root}/usr/share/{package}"
        names = [f"f{number}" for number in range(len(sizes))]
        try:
            there = sorted(os.listdir(directory))  # noqa: PTH208 - pathlib is slow to import
            if there != names:
                return f"its files are {' '.join(there) or 'none'}, not {' '.join(names)}"
            for number, (name, size) in enumerate(zip(names, sizes, strict=True)):
                with open(f"{directory}/{name}", "rb") as file:  # noqa: PTH123
                    content = file.read()
                if len(content) != size or content != payload_of(
                    self.job["trial"], seq, number, size
                ):
                    return f"{name} holds something else"
        except OSError as error:
            return str(error)
        return ""

    def _check(
        self,
        root: str,
        unfinished: set[str],
        versions: dict[str, int],
        parts: dict[int, str],
        complaints: list[str],
    ) -> None:
        """Run dpkg's two checks; files of a package that is not installed may be of two versions."""
        audited = dpkg(root, "--audit")
        if audited.returncode not in _LOOKED:
            raise ApplicationError(f"dpkg --audit: {words_of(audited.stderr)}")
        for line in audited.stdout.decode(errors="backslashreplace").splitlines():
            if line.startswith(" ") and line.split()[0] not in unfinished:
                complaints.append(f"dpkg --audit: {line.strip()}")
        verified = dpkg(root, "--verify")
        if verified.returncode not in _LOOKED:
            raise ApplicationError(f"dpkg --verify: {words_of(verified.stderr)}")
        for line in verified.stdout.decode(errors="backslashreplace").splitlines():
            _, _, path = line.partition("/")
            package = path.split("/")[2] if path.startswith("usr/share/") else ""
            if package not in versions:
                complaints.append(f"dpkg --verify: {line.strip()}")
            elif package not in unfinished:
                parts.setdefault(versions[package], f"dpkg --verify: {line.strip()}")


def _described(description: str) -> tuple[list[int], list[int]]:
    """The earlier versions, and the files' sizes; raises `ValueError` if a package states neither."""
    about = json.loads(description)
    try:
        return [int(seq) for seq in about["before"]], [int(size) for size in about["sizes"]]
    except (KeyError, TypeError) as error:
        raise ValueError(f"a package is described as {description}") from error


APPLICATION = Dpkg
