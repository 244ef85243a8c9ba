"""A measurement of speed, from its machines to its document."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from msgspec.structs import replace

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.cells import SYNC
from torture.choices.workloads.gobonniego import NAME
from torture.facts.axes.pool_disks import SlogClass
from torture.facts.axes.sync import Sync
from torture.facts.recording.disks import Profile, ShelfDisk
from torture.features.speed.documents import MeasuredDocument, MeasuredPlace
from torture.features.speed.jobs.jobs import MEMORY_MIB, Link, slowed
from torture.features.speed.jobs.slow_motion import CLIENT_TIMERS, NAS_TIMERS
from torture.features.speed.run.job_programs import Recorded, Target, lay_out, shape_of
from torture.features.speed.run.jobs_run import find_slow_motions, run_rounds, run_unmodelled
from torture.features.speed.tasks import MeasureOrder
from torture.machines.lab.domains import Disk
from torture.machines.lab.machine import Machine
from torture.machines.nas.pool import LOG_PROFILES
from torture.machines.shelf.server import Shelf
from torture.trials.trial.courses.protocol import Course
from torture.trials.trial.prepared_machines import ready_machines
from torture.trials.trial.setup import settle
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter

_FILE = "speed"
_DEVICE, _TARGET = "/dev/vdb", "vdb"
_SCRIPT_DEADLINE_S = 60
_STEAL = 7
_EMPTY_ARC = """\
echo 1048576 > /sys/module/zfs/parameters/dbuf_cache_max_bytes
for _ in $(seq 50); do
    echo 3 > /proc/sys/vm/drop_caches
    awk '$1 == "data_size" && $3 < 41943040 { found = 1 } END { exit !found }' \
        /proc/spl/kstat/zfs/arcstats && exit
    sleep 0.1
done
exit 1
"""
"""Shell. The cache of blocks in use is limited first (zfs(4)): what it has stays in the ARC.

The ARC keeps 32 MiB at least (`zfs_arc_min`), 6 % of the data that a cold job reads.
"""
_ARC = "awk '$1 == \"size\" { print $3 }' /proc/spl/kstat/zfs/arcstats"


def _measure(trial: Trial, machines: Machines, evidence: EvidenceWriter) -> None:
    """Measure the cell as ordered; the document is kept as evidence."""
    order = trial.spec.task
    assert isinstance(order, MeasureOrder), "the course is found by the task"
    before = _processor_times()
    if order.place is MeasuredPlace.LOG_DEVICE:
        document = _measure_log_device(trial, machines, evidence, order)
    else:
        document = _measure_volume(trial, machines, evidence, order)
    spent = [after - earlier for after, earlier in zip(_processor_times(), before, strict=True)]
    document = replace(document, steal_share=round(spent[_STEAL] / sum(spent), 6))
    evidence.write(MeasuredDocument.FILE, document.as_json())


def _no_drops() -> int:
    return 0


def _processor_times() -> list[int]:
    """Of all processors, in ticks: user, nice, system, idle, iowait, irq, softirq, steal (proc(5))."""
    total = Path("/proc/stat").read_text().splitlines()[0]
    return [int(ticks) for ticks in total.split()[1 : _STEAL + 2]]


def _measure_volume(
    trial: Trial, machines: Machines, evidence: EvidenceWriter, order: MeasureOrder
) -> MeasuredDocument:
    nas, client = ready_machines(trial, machines, evidence)
    shelf, network = machines.shelf, machines.lab.network

    @contextmanager
    def linked(link: str, times: int) -> Iterator[Callable[[], int]]:
        if not link:
            yield _no_drops
            return
        with network.slowed_link(slowed(Link(link), times)) as wire:
            yield lambda: wire.counts().lost

    target = Target(
        client=client,
        path=f"{MOUNT_POINT}/{_FILE}" if trial.is_mounted else trial.device,
        slow=shelf.control.slow,
        settle=lambda: settle(nas),
        empty_cache=lambda: nas.must("sh", "-c", _EMPTY_ARC, deadline_s=_SCRIPT_DEADLINE_S),
        linked=linked,
        gobonniego=trial.jobs.get(NAME, {}),
        recorded=Recorded(shelf=shelf, shape=shape_of(trial.cell)),
        timed={"nas": (nas, NAS_TIMERS), "client": (client, CLIENT_TIMERS)},
    )
    document = _measured(
        target,
        order,
        evidence,
        profile=_answering(trial),
        syncs_every_write=trial.cell[SYNC] is Sync.ALWAYS,
    )
    arc = nas.must("sh", "-c", _ARC, deadline_s=_SCRIPT_DEADLINE_S).stdout
    return replace(document, arc_bytes=int(arc), nas_memory_mib=nas.spec.memory_mib)


def _measure_log_device(
    trial: Trial, machines: Machines, evidence: EvidenceWriter, order: MeasureOrder
) -> MeasuredDocument:
    """A disk of the class in front of the client alone: the model itself, as a guest sees it."""
    profile = LOG_PROFILES[SlogClass(order.device)]
    disk = ShelfDisk(serial="measured", size_mib=1024, profile=profile)
    folder = trial.scratch / "measured"
    folder.mkdir()
    shelf = Shelf(directory=folder, socket=machines.lab.sockets / f"m{secrets.token_hex(2)}")
    with ExitStack() as stack:
        shelf.start((disk,), keeps_recording=False)
        stack.callback(shelf.stop)
        client = _client_alone(trial, machines, stack)
        client.attach(Disk(target=_TARGET, serial=disk.serial, source=shelf.source(disk)))
        target = Target(
            client=client,
            path=_DEVICE,
            slow=shelf.control.slow,
            settle=lambda: None,
            empty_cache=lambda: None,
            linked=lambda _link, _times: nullcontext(_no_drops),
            timed={"client": (client, CLIENT_TIMERS)},
        )
        return _measured(target, order, evidence, profile=profile)


def _client_alone(trial: Trial, machines: Machines, stack: ExitStack) -> Machine:
    lab = machines.lab
    spec = lab.client_spec(trial.folder / "client.console.log", lab.sockets / "client.sock")
    client = machines.own(lab.start(spec, ()))
    stack.callback(client.kill)
    return client


def _measured(
    target: Target,
    order: MeasureOrder,
    evidence: EvidenceWriter,
    *,
    profile: Profile,
    syncs_every_write: bool = False,
) -> MeasuredDocument:
    with evidence.stage("lay out"):
        lay_out(target, order, evidence)
    with evidence.stage("measure the emulator"):
        unmodelled = run_unmodelled(target, order, evidence)
    with evidence.stage("find the slow motion"):
        motions = {(link, name): order.slow_motion for link in order.links for name in order.jobs}
        if not order.slow_motion:
            motions = find_slow_motions(
                target,
                order,
                evidence,
                unmodelled=unmodelled,
                profile=profile,
                syncs_every_write=syncs_every_write,
            )
    with evidence.stage("measure"):
        ended = tuple(
            run_rounds(target, order, evidence, slow_motion=motions, unmodelled=unmodelled)
        )
    slowest = max(one.job.slow_motion for one in ended)
    with evidence.stage("count"):
        recorded = target.recorded
        jobs = tuple(one.job if recorded is None else recorded.counted(one) for one in ended)
    return MeasuredDocument(
        place=order.place,
        device=order.device,
        slow_motion=slowest,
        jobs=jobs,
        unmodelled_ms={name: round(end.mean_ms, 6) for name, end in unmodelled.items()},
        timers={
            f"{name}:{timer.path}": str(round(timer.normal * slowest))
            for name, (_, timers) in target.timed.items()
            for timer in timers
        },
        size_mib=order.size_mib,
        client_memory_mib=MEMORY_MIB if target.gobonniego else target.client.spec.memory_mib,
    )


def _answering(trial: Trial) -> Profile:
    """The speed of the disk on which a synchronous write waits: a log device, else a data disk."""
    logs = [disk for disk in trial.disks if disk.serial.startswith("slog")]
    return (logs or list(trial.disks))[0].profile


COURSE = Course(task=MeasureOrder, stages=_measure, makes_recording=False)
