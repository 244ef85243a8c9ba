"""The way to a Dask scheduler that only its fleet reaches: loopback, or TLS with own certificates.

Dask's protocol runs the code of whoever connects (https://distributed.dask.org/en/stable/tls.html).
"""

from __future__ import annotations

import importlib
import ipaddress
import logging
import os
from typing import Any
from urllib.parse import urlsplit

from torture.errors import HarnessError
from torture.machines.host.fleet import (
    AUTHORITY,
    CERTIFICATE,
    CERTIFICATES_VARIABLE,
    KEY,
    SETTINGS,
    certificates_folder,
)

_CONNECT_DEADLINE_S = 15


def checked_address(text: str) -> str:
    """A scheduler's address that is safe to use; raises `HarnessError` for any other."""
    address = text if "://" in text else f"tcp://{text}"
    parts = urlsplit(address)
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise HarnessError(f"{text} is no address: {error}", hint=_FORM) from error
    if parts.scheme not in ("tcp", "tls") or not host or port is None:
        raise HarnessError(f"{text!r} is no address of a scheduler", hint=_FORM)
    if parts.scheme == "tcp" and not _is_loopback(host):
        raise HarnessError(
            f"{text} is a plain address of another machine: a Dask scheduler there runs the code of "
            "every program that reaches it",
            hint="tools/fleet certificates DIR, then --workers dask:tls://HOST:PORT",
        )
    return address


_FORM = "--workers dask:tcp://127.0.0.1:8786, or dask:tls://HOST:8786"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name, which may be any machine's


def connect(place: str) -> tuple[Any, Any]:
    """A client of the scheduler at an address, or of a cluster on this machine, and that cluster.

    Raises `HarnessError` when Dask is missing, the address is unsafe, or there is no answer.
    """
    try:
        dask, distributed = map(importlib.import_module, ("dask", "distributed"))
    except ImportError as error:
        raise HarnessError(
            f"--workers dask needs Dask distributed: {error}",
            hint="tools/run --setup-only --workers dask",
        ) from error
    loggers = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    for name in (*loggers, "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # the run says it in its own words
    if not place:
        with dask.config.set(SETTINGS):
            cluster = distributed.LocalCluster(
                n_workers=len(os.sched_getaffinity(0)),
                threads_per_worker=1,
                memory_limit=0,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
        return distributed.Client(cluster, set_as_default=False), cluster
    address = checked_address(place)
    security = _security(distributed) if address.startswith("tls:") else None
    try:
        client = distributed.Client(
            address, security=security, set_as_default=False, timeout=_CONNECT_DEADLINE_S
        )
    except (OSError, TimeoutError) as error:
        raise HarnessError(
            f"no Dask scheduler answers at {address}: {error}", hint="tools/fleet commands"
        ) from error
    return client, None


def _security(distributed: Any) -> Any:
    folder = certificates_folder()
    authority, certificate, key = (folder / name for name in (AUTHORITY, CERTIFICATE, KEY))
    for file in (authority, certificate, key):
        if not file.is_file():
            raise HarnessError(
                f"there is no certificate {file}",
                hint=f"tools/fleet certificates {folder}, or set {CERTIFICATES_VARIABLE}",
            )
    return distributed.Security(
        require_encryption=True,
        tls_ca_file=str(authority),
        tls_client_cert=str(certificate),
        tls_client_key=str(key),
    )
