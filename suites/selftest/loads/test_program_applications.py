"""Applications that are programs of their own, on a real directory: run, read back, judged, damaged."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from suites.selftest.loads.test_applications import Written
from torture.choices.workloads import AXIS
from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads.protocol import Brought, Place
from torture.facts.evidence.ledger import Begin, OperationKind
from torture.oracles.verdict.guarantee import Verdict
from vmimages.client.load.applications import application_of
from vmimages.client.load.applications.dpkg import dpkg, package_file

PROGRAMS = {"git": "git", "dpkg": "dpkg", "fio_append": "fio", "fio_random": "fio"}
ACKNOWLEDGED = {"git": 12, "dpkg": 12, "fio": 6}


class Writings:
    """The files that each wrote, once for all tests."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory = factory
        self._written: dict[str, Written] = {}

    def of(self, name: str) -> Written:
        if shutil.which(PROGRAMS[name]) is None:
            pytest.skip(f"there is no {PROGRAMS[name]} here")
        if name not in self._written:
            workload = AXIS.choice(name).value
            assert isinstance(workload, ApplicationWorkload)
            base = self._factory.mktemp("program")
            self._written[name] = Written(
                base,
                workload,
                stop_after=ACKNOWLEDGED[workload.application],
                pause_after=ACKNOWLEDGED[workload.application] // 2,
            )
        return self._written[name]


@pytest.fixture(scope="module")
def writings(tmp_path_factory: pytest.TempPathFactory) -> Writings:
    return Writings(tmp_path_factory)


@pytest.fixture(params=sorted(PROGRAMS))
def written(request: pytest.FixtureRequest, writings: Writings) -> Written:
    return writings.of(request.param)


@pytest.fixture
def committed(writings: Writings) -> Written:
    return writings.of("git")


@pytest.fixture
def installed(writings: Writings) -> Written:
    return writings.of("dpkg")


@pytest.fixture
def tampered(tmp_path: Path) -> Path:
    return tmp_path / "tampered"


def test_acknowledged_data_reads_back_intact(written: Written) -> None:
    assert written.ledger.acknowledged >= min(ACKNOWLEDGED.values())
    findings = written.judged(written.directory)
    assert (findings.verdict, findings.lost, findings.reasons) == (Verdict.INTACT, 0, ())


def test_an_older_state_is_one_that_went_back(written: Written) -> None:
    findings = written.judged(written.earlier)
    assert findings.verdict is Verdict.ROLLED_BACK
    assert findings.lost > 0


def test_one_writer_that_went_back_alone_is_corruption(
    written: Written, tampered: Path, tmp_path: Path
) -> None:
    shutil.copytree(written.directory, tampered)
    fresh = tmp_path / "fresh"
    application_of(written.job | {"directory": str(fresh)}).prepare()
    shutil.rmtree(tampered / "0")
    shutil.copytree(fresh / "0", tampered / "0")
    assert written.judged(tampered).verdict is Verdict.CORRUPTED


def test_one_that_is_gone_is_beyond_repair(written: Written, tampered: Path) -> None:
    shutil.copytree(written.directory, tampered)
    shutil.rmtree(tampered / "1")
    findings = written.judged(tampered)
    assert (findings.verdict, findings.lost) == (Verdict.UNREPAIRABLE, written.durable(1))
    assert 0 < findings.lost < written.ledger.acknowledged


def own_files(written: Written, tampered: Path) -> list[Path]:
    """The files of a run of fio, by name; the run was acknowledged."""
    shutil.copytree(written.directory, tampered)
    run = sorted((tampered / "0").iterdir(), key=lambda path: int(path.name))[0]
    return sorted(path for path in run.iterdir() if path.name != ".complete")


def test_a_byte_that_fio_did_not_write_is_corruption(writings: Writings, tampered: Path) -> None:
    written = writings.of("fio_append")
    file = own_files(written, tampered)[0]
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    findings = written.judged(tampered)
    assert (findings.verdict, findings.torn) == (Verdict.CORRUPTED, 1)
    assert "fio returned" in findings.reasons[0]


def test_a_file_of_fio_that_is_gone_is_corruption_and_is_not_made_anew(
    writings: Writings, tampered: Path
) -> None:
    file = own_files(writings.of("fio_random"), tampered)[0]
    file.unlink()
    findings = writings.of("fio_random").judged(tampered)
    assert (findings.verdict, findings.torn) == (Verdict.CORRUPTED, 1)
    assert not file.exists()


def test_data_of_another_run_of_fio_is_corruption(writings: Writings, tampered: Path) -> None:
    """Each run has a seed of its own: an older block in the place of a newer one is found."""
    written = writings.of("fio_random")
    file = own_files(written, tampered)[0]
    another = next(path for path in tampered.rglob(file.name) if path != file)
    shutil.copy(another, file)
    assert written.judged(tampered).verdict is Verdict.CORRUPTED


def test_a_run_of_fio_that_was_under_way_may_be_in_any_state(
    writings: Writings, tampered: Path
) -> None:
    written = writings.of("fio_append")
    shutil.copytree(written.directory, tampered)
    begun = tampered / "0/9999"
    begun.mkdir()
    (begun / "log.0.0").write_bytes(b"begun")
    assert written.judged(tampered).verdict is Verdict.INTACT


def test_a_job_that_fio_cannot_verify_is_refused_before_any_load(tmp_path: Path) -> None:
    if shutil.which("fio") is None:
        pytest.skip("there is no fio here")
    common = "filename=same\nrw=write\nsize=128k\nverify=crc32c\n"
    text = f"[first]\n{common}bs=4k\n[over it]\n{common}bs=32k\nstonewall\n"
    own = Brought(load="fio_own", path="/own.fio", sha256="", text=text)
    place = Place(directory=str(tmp_path), brought=(own,))
    job = AXIS.choice("fio_own").value.job(seed=1, place=place)
    with pytest.raises(OSError, match=r"does not find again what this job writes: .*verify"):
        application_of(job).prepare()


def git_says(repository: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", *arguments],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def object_file(repository: Path, name: str) -> Path:
    number = git_says(repository, "rev-parse", name)
    return repository / ".git/objects" / number[:2] / number[2:]


def blob_of_head(repository: Path) -> Path:
    name = git_says(repository, "diff", "--name-only", "HEAD~", "HEAD").splitlines()[0]
    return object_file(repository, f"HEAD:{name}")


def empty(path: Path) -> None:
    path.chmod(0o600)
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("spoil", "verdict"),
    [
        (lambda repository: blob_of_head(repository).unlink(), Verdict.CORRUPTED),
        (lambda repository: empty(blob_of_head(repository)), Verdict.CORRUPTED),
        (lambda repository: object_file(repository, "HEAD^{tree}").unlink(), Verdict.CORRUPTED),
        (lambda repository: empty(object_file(repository, "HEAD~")), Verdict.UNREPAIRABLE),
        (lambda repository: empty(repository / ".git/refs/heads/main"), Verdict.UNREPAIRABLE),
        (lambda repository: empty(repository / ".git/index"), Verdict.CORRUPTED),
    ],
    ids=["blob gone", "blob empty", "tree gone", "commit empty", "branch empty", "index empty"],
)
def test_a_damaged_repository_is_reported(
    committed: Written, tampered: Path, spoil: Callable[[Path], None], verdict: Verdict
) -> None:
    shutil.copytree(committed.directory, tampered)
    spoil(tampered / "0")
    assert committed.judged(tampered).verdict is verdict


def test_a_commit_with_other_files_is_corruption(committed: Written, tampered: Path) -> None:
    """Sound for git, and not what was committed."""
    shutil.copytree(committed.directory, tampered)
    repository = tampered / "0"
    message = git_says(repository, "log", "-1", "--format=%B")
    for name in git_says(repository, "ls-files").splitlines():
        file = repository / name
        file.write_bytes(b"?" * file.stat().st_size)
    settings = ("-c", "user.name=n", "-c", "user.email=e@e.invalid")
    git_says(repository, *settings, "commit", "--quiet", "--all", "--amend", "--message", message)
    findings = committed.judged(tampered)
    assert findings.verdict is Verdict.CORRUPTED
    assert findings.torn == 1


def a_package(root: Path) -> Path:
    return sorted((root / "usr/share").iterdir())[0]


def change_first_byte(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(bytes([data[0] ^ 1]) + data[1:])


def change_file_and_sums(root: Path) -> None:
    """A package that dpkg itself takes for whole: only its installer knows better."""
    file = a_package(root) / "f0"
    change_first_byte(file)
    sums = root / f"var/lib/dpkg/info/{a_package(root).name}.md5sums"
    sums.unlink()
    subprocess.run(
        f"md5sum usr/share/{a_package(root).name}/f* > {sums}", shell=True, cwd=root, check=True
    )


@pytest.mark.parametrize(
    ("spoil", "verdict"),
    [
        (lambda root: (a_package(root) / "f0").unlink(), Verdict.CORRUPTED),
        (lambda root: change_first_byte(a_package(root) / "f0"), Verdict.CORRUPTED),
        (change_file_and_sums, Verdict.CORRUPTED),
        (lambda root: (a_package(root) / "f0.dpkg-new").touch(), Verdict.CORRUPTED),
        (
            lambda root: (root / f"var/lib/dpkg/info/{a_package(root).name}.list").unlink(),
            Verdict.CORRUPTED,
        ),
        (lambda root: (root / "var/lib/dpkg/status").unlink(), Verdict.UNREPAIRABLE),
        (lambda root: (root / "var/lib/dpkg/status").write_text("garbage\n"), Verdict.UNREPAIRABLE),
    ],
    ids=["file gone", "bit", "bit and sum", "left over", "no list", "no status", "bad status"],
)
def test_a_damaged_root_is_reported(
    installed: Written, tampered: Path, spoil: Callable[[Path], None], verdict: Verdict
) -> None:
    shutil.copytree(installed.directory, tampered)
    spoil(tampered / "0")
    assert installed.judged(tampered).verdict is verdict


def test_a_package_in_the_middle_of_its_installation_is_not_there_yet(
    installed: Written, tampered: Path
) -> None:
    """It is if it was acknowledged before; its files may then be of both versions."""
    shutil.copytree(installed.directory, tampered)
    status = tampered / "0/var/lib/dpkg/status"
    text = status.read_text()
    status.write_text(text.replace("ok installed", "ok unpacked", 1))
    (a_package(tampered / "0") / "f0").write_bytes(b"new")
    findings = installed.judged(tampered)
    assert findings.lost == 1
    assert findings.torn == 0


@pytest.mark.parametrize("is_new", [False, True])
def test_a_package_in_the_middle_of_its_upgrade_is_as_far_as_dpkg_came(
    installed: Written, tampered: Path, is_new: bool
) -> None:
    """It is the older one, half installed, for as long as the newer one is unpacked."""
    shutil.copytree(installed.directory, tampered)
    root, package = tampered / "0", a_package(tampered / "0").name
    upgrade = Begin(
        t_ms=1e9, seq=9999, writer=0, kind=OperationKind.TRANSACTION, file=0, blocks=(),
        size_blocks=0, what={"package": package, "sizes": [9]},
    )  # fmt: skip
    if is_new:
        archive = tampered / "new.deb"
        archive.write_bytes(package_file(7, package, 9999, [9], versions_of(root, package)))
        assert dpkg(str(root), "--unpack", str(archive)).returncode == 0
    else:
        status = root / "var/lib/dpkg/status"
        head = f"Package: {package}\nStatus: install"
        amid = f"{head} reinstreq half-installed"
        status.write_text(status.read_text().replace(f"{head} ok installed", amid))
    findings = installed.judged(tampered, began=(upgrade,))
    assert (findings.verdict, findings.lost, findings.reasons) == (Verdict.INTACT, 0, ())
    assert installed.judged(tampered).verdict is Verdict.CORRUPTED


def versions_of(root: Path, package: str) -> list[int]:
    """All that were installed, to the one that is."""
    query = ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "--show"]
    shown = ["--showformat=${Version}\\t${Description}", package]
    said = subprocess.run([*query, *shown], capture_output=True, text=True, check=True).stdout
    version, about = said.split("\t")
    return [*json.loads(about)["before"], int(version)]
