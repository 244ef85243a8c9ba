"""The needs of the hosts of a campaign on Dask: certificates, and the commands that start them.

Dask's protocol runs the code of whoever connects (https://distributed.dask.org/en/stable/tls.html). So
only holders of the fleet's key get in. Standard library only.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torture.errors import HarnessError
from torture.files import CHECKOUT
from torture.machines.host.abilities import run_host

CERTIFICATES_VARIABLE = "TORTURE_CERTIFICATES"
"""The variable with the folder that `make_certificates` filled."""
AUTHORITY, CERTIFICATE, KEY = "ca.pem", "fleet.pem", "fleet.key"
"""The files in it. One certificate serves all roles: whoever has its key belongs to the fleet."""
SETTINGS: dict[str, Any] = {
    "distributed.scheduler.worker-ttl": "30s",
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.profile.enabled": False,
}
"""Of every scheduler and worker. A silent worker is gone before its lease is; Dask repeats no trial."""
PORT = 8786
"""Dask's usual port of a scheduler."""
WORKER_OPTIONS = (
    "--nthreads", "1", "--memory-limit", "0", "--death-timeout", "60", "--no-dashboard",
)  # fmt: skip
"""Of every worker. QEMU's memory is not the worker's, and a worker without a scheduler ends."""
_DAYS = "365"
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_OF_LEAF = """\
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth,clientAuth
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
"""


def certificates_folder() -> Path:
    """`$TORTURE_CERTIFICATES`, else a folder of the user's configuration."""
    given = os.environ.get(CERTIFICATES_VARIABLE)
    return Path(given) if given else Path.home() / ".config/powercut-torture/certificates"


def make_certificates(folder: Path) -> None:
    """Make the fleet's certificate and key by openssl(1), valid for a year.

    The key of the authority is not kept: no other certificate can be made later. Raises
    `HarnessError` where the folder holds some already, or openssl fails.
    """
    if any((folder / name).exists() for name in (AUTHORITY, CERTIFICATE, KEY)):
        raise HarnessError(f"{folder} holds certificates already", hint="name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        made = Path(work)
        authority, request, extensions = (made / name for name in ("ca.key", "csr", "extensions"))
        extensions.write_text(_OF_LEAF)
        ca_pem, leaf_pem, leaf_key = (made / name for name in (AUTHORITY, CERTIFICATE, KEY))
        run_host("openssl", "req", "-x509", *_NEW_KEY, "-days", _DAYS, "-subj", "/CN=torture-ca",
                 "-addext", "keyUsage=critical,keyCertSign",
                 "-keyout", str(authority), "-out", str(ca_pem))  # fmt: skip
        run_host("openssl", "req", "-new", *_NEW_KEY, "-subj", "/CN=torture-fleet",
                 "-keyout", str(leaf_key), "-out", str(request))  # fmt: skip
        run_host("openssl", "x509", "-req", "-days", _DAYS, "-in", str(request),
                 "-CA", str(ca_pem), "-CAkey", str(authority), "-CAcreateserial",
                 "-extfile", str(extensions), "-out", str(leaf_pem))  # fmt: skip
        leaf_key.chmod(0o600)
        for file in (ca_pem, leaf_pem, leaf_key):
            file.rename(folder / file.name)


def commands(host: str, folder: Path, *, workers: int, port: int = PORT) -> Iterator[str]:
    """The lines of a shell that start a scheduler, a host's workers, and a campaign on them."""
    tls = shlex.join(tls_options(folder))
    dask = f"cd {shlex.quote(str(CHECKOUT))} && {settings_in_words()} PYTHONPATH=. .venv/bin/dask"
    yield f"# on {host}: the scheduler"
    yield f"{dask} scheduler --protocol tls --port {port} --no-dashboard {tls}"
    yield f"# on each host: {workers} slots"
    yield (
        f"{dask} worker tls://{host}:{port} --nworkers {workers} {' '.join(WORKER_OPTIONS)} {tls}"
    )
    yield "# the campaign"
    yield (
        f"{CERTIFICATES_VARIABLE}={shlex.quote(str(folder))} tools/run suites/powercut "
        f"--workers dask:tls://{host}:{port}"
    )


def tls_options(folder: Path) -> list[str]:
    """The options of a scheduler and of a worker whose certificates lie in a folder."""
    named = (("ca-file", AUTHORITY), ("cert", CERTIFICATE), ("key", KEY))
    return [word for option, name in named for word in (f"--tls-{option}", str(folder / name))]


def settings_in_words() -> str:
    """The settings as variables of a command (https://docs.dask.org/en/stable/configuration.html)."""
    return " ".join(f"{variable_of(name)}={value}" for name, value in SETTINGS.items())


def variable_of(setting: str) -> str:
    """The variable of the environment that gives Dask a setting."""
    return f"DASK_{setting.replace('.', '__').replace('-', '_').upper()}"
