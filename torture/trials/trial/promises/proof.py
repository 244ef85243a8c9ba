"""Proof before use: the write caches of the whole chain, and a client's flush that reaches the disks.

A client that sends no flush would show every setting as unsafe. A chain without caches would show
every setting as safe.
"""

from __future__ import annotations

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.volumes import VolumeKind, zvol
from torture.errors import HarnessError
from torture.facts.evidence.folder import PROOF
from torture.machines.lab.machine import Machine
from torture.machines.nas import pool
from torture.machines.nas.settings import essentials_of, settings_of
from torture.machines.shelf.server import Shelf
from torture.records.record.advertised import (
    Advertised,
    parse_mount_options,
    parse_protocol,
    parse_queue,
)
from torture.shell import advertised_by
from torture.trials.trial.promises.flushes import DEADLINE_S, follow_flush
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.storage import StorageFailed
from torture.trials.trial.shared.trial import Trial

_WRITE_BACK = "write back"
_VOLUME = "volume"


def prove(
    trial: Trial, shelf: Shelf, evidence: EvidenceWriter, *, nas: Machine, client: Machine
) -> None:
    """Assert the chain from the client's flush to the shelf, and keep the findings as evidence.

    Raises `HarnessError` when a cache is not write-back, or a setting of the cell is not in effect.
    It also raises when no flush reached the disks with the intent log, although one must. Where ZFS
    or the NAS's target or server has lost it, the trial goes on: the cut shows the loss.
    """
    cell = trial.cell
    scripts = pool.cache_scripts(trial.disks) | dict(trial.transport.cache_scripts())
    asked = {setting.name: setting for setting in settings_of(cell)}
    asked |= {setting.name: setting for setting in essentials_of(cell)}
    of_settings = {name: setting.script for name, setting in asked.items()}
    printed = _printed_by(nas, scripts | of_settings | _asks_volume(trial))
    caches = {f"nas/{name}": printed[name] for name in scripts}
    settings = {name: printed[name] for name in asked}
    advertised = Advertised(
        client=_offered_to(trial, client), volume=parse_queue(printed.get(_VOLUME, ""))
    )
    if trial.attachment.device is not None and trial.attachment.has_write_cache:
        caches |= {"client": advertised.client.get("write_cache", "")}
    flushes = follow_flush(trial, shelf, nas=nas, client=client)
    seen = {
        "write_cache": caches,
        "settings": settings,
        **flushes.as_json(),
        "advertised": advertised.as_json(),
    }
    evidence.write(PROOF, seen)
    if wrong := {where: cache for where, cache in caches.items() if cache != _WRITE_BACK}:
        raise HarnessError(f"not write-back, so nothing would be tested: {wrong}")
    if unset := {name: seen for name, seen in settings.items() if seen != asked[name].expected}:
        raise HarnessError(f"settings of the cell are not in effect: {unset}")
    if flushes.is_lost_by_us:
        raise HarnessError(
            "a flush of the client did not reach the disks with the intent log, and nothing between "
            f"them is shown to have lost it: {flushes.as_json()}",
            hint=f"read {trial.folder / PROOF}",
        )


def not_in_effect(trial: Trial, nas: Machine, *, when: str) -> tuple[str, ...]:
    """The settings of the cell, and caches of the volume, that a NAS at work has otherwise.

    Raises `StorageFailed` when it hangs.
    """
    every = (*settings_of(trial.cell), *essentials_of(trial.cell))
    expected = {setting.name: setting.expected for setting in every}
    scripts = {setting.name: setting.script for setting in every}
    caches = trial.transport.cache_scripts()
    expected |= dict.fromkeys(caches, _WRITE_BACK)
    printed = _printed_by(nas, scripts | dict(caches))
    return tuple(
        f"{when}: {name}: {line}, not {expected[name]}"
        for name, line in printed.items()
        if line != expected[name]
    )


def _asks_volume(trial: Trial) -> dict[str, str]:
    """The script that asks the zvol in the NAS for its promises; none where there is no zvol."""
    is_zvol = trial.transport.traits.volume is VolumeKind.ZVOL
    return {_VOLUME: advertised_by(zvol.DEVICE)} if is_zvol else {}


def _offered_to(trial: Trial, client: Machine) -> dict[str, str]:
    """The promises of the client's disk, or of its mount."""
    device, of_protocol = trial.attachment.device, trial.attachment.advertised_script
    options = f"findmnt --noheadings --output OPTIONS --mountpoint {MOUNT_POINT}"
    scripts = {"mount": options} if device is None else {"disk": advertised_by(device)}
    printed = _printed_by(client, scripts | ({"protocol": of_protocol} if of_protocol else {}))
    return (
        parse_queue(printed.get("disk", ""))
        | parse_mount_options(printed.get("mount", ""))
        | parse_protocol(printed.get("protocol", ""))
    )


def _printed_by(machine: Machine, scripts: dict[str, str]) -> dict[str, str]:
    """The line that each of these scripts prints, by its name, in one round trip."""
    if not scripts:
        return {}
    script = "\n".join(["set -eu", *scripts.values()])
    completed = machine.run("sh", "-c", script, deadline_s=DEADLINE_S)
    if completed.exit_code is None:
        raise StorageFailed(f"{machine.name} did not print its settings", machine=machine)
    machine.require_success(completed, deadline_s=DEADLINE_S)
    lines = completed.stdout.splitlines()
    if len(lines) != len(scripts):
        raise HarnessError(f"{machine.name} printed {lines} for {', '.join(scripts)}")
    return dict(zip(scripts, lines, strict=True))
