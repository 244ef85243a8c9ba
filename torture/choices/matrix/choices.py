"""Cells with other choices on some axes, and the cells in which a fault is the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import AXES, FILESYSTEM, SETTINGS, Cell
from torture.facts.axes.axis import FORMER_NAMES
from torture.facts.axes.free_settings import GRACE, MODULE, MOUNT, POOL, FreeSettings
from torture.facts.linux.kernels import LinuxVersion, why_unfit
from torture.facts.zfs.versions import DEFAULT, ZfsVersion, zfs_version


def why_different_there(
    here: Cell, there: Cell, *, bound_to: Collection[str], amounts_to: Mapping[str, str]
) -> str:
    """Why a fault of one cell differs, or is no fault, in the other; empty where it is the same.

    `bound_to` and `amounts_to` are as in `torture.choices.experiments.protocol.Fault`.
    """
    own = here.axes
    anew = {axis for axis, name in there.axes.items() if name != own[axis]}
    if bound := sorted(anew.intersection(bound_to)):
        return f"works only with the {' and '.join(bound)} of {here.name}"
    theory, promised = guarantee_of(here), guarantee_of(there)
    if promised is not theory:
        return f"needs a cell with the guarantee '{theory}', and {there.name} has '{promised}'"
    try:
        weaker = there.but(**amounts_to)
    except ValueError as error:
        return f"cannot be in {there.name}: {error}"
    if amounts_to and guarantee_of(weaker) is promised:
        return f"does not weaken {there.name}: its guarantee stays '{promised}'"
    return ""


def parse_choices(
    texts: Sequence[str],
    *,
    properties: Sequence[str] = (),
    tunables: Sequence[str] = (),
    mounts: Sequence[str] = (),
    pool_properties: Sequence[str] = (),
    grace_s: int | None = None,
) -> dict[str, str]:
    """Axis to choice, from texts like `layout=raidz1`; raises `ValueError` with valid choices.

    `properties`, `tunables`, `mounts` and `pool_properties` are texts like `recordsize=8K`: settings of
    ZFS, and of the client's mount.
    """
    chosen: dict[str, str] = {}
    settings: dict[str, str] = {}
    for text in texts:
        field, equals, name = text.partition("=")
        if not equals:
            raise ValueError(f"{text!r} is no choice: write an axis and its choice, FIELD=CHOICE")
        if (former := FORMER_NAMES.get(name)) is not None and former.axis == field:
            name, equals, value = former.today.partition("=")
            if equals:
                settings = _added(settings, name, value)
                continue
            name, _, beside = name.partition("-")
            if beside:
                chosen |= {axis.field: beside for axis in AXES.values() if axis.has(beside)}
        if field not in AXES:
            if any(former.axis == field for former in FORMER_NAMES.values()):
                raise ValueError(
                    f"{field} is a setting of ZFS: use --property or --tunable {field}=VALUE"
                )
            raise ValueError(f"no axis is called {field!r}; there are {', '.join(AXES)}")
        if name not in AXES[field].names:
            known = ", ".join(AXES[field].names)
            raise ValueError(f"{name!r} is no choice of {field}; there are {known}")
        if chosen.get(field, name) != name:
            raise ValueError(
                f"a cell is {chosen[field]!r} or {name!r}, and not both: say one {field}"
            )
        chosen[field] = name
    of_kind = {"": properties, MODULE: tunables, MOUNT: mounts, POOL: pool_properties}
    for kind, pairs in of_kind.items():
        for text in pairs:
            name, equals, value = text.partition("=")
            if not equals or "." in name:
                raise ValueError(f"{text!r} is no setting: write NAME=VALUE, with its own name")
            settings = _added(settings, f"{kind}{name}", value)
    if grace_s is not None:
        settings = _added(settings, GRACE, str(grace_s))
    return chosen | ({SETTINGS.field: FreeSettings.of(settings).name} if settings else {})


def _added(settings: Mapping[str, str], name: str, value: str) -> dict[str, str]:
    if settings.get(name, value) != value:
        raise ValueError(f"{name} is {settings[name]!r} or {value!r}, and not both: say one")
    return {**settings, name: value}


def with_choices(cells: Sequence[Cell], chosen: Mapping[str, str]) -> tuple[Cell, ...]:
    """These cells with these choices, each once; omits combinations that make no sense.

    Raises `ValueError` when none is left, with the reason and the possible choices.
    """
    left_out = meaningless_cells(cells, chosen)
    made = {_but(cell, chosen): None for cell in cells if cell not in left_out}
    if cells and not made:
        why = f"{cells[0].name}: {left_out[cells[0]]}"
        raise ValueError(f"{why}; {_alternatives(cells[0], chosen)}")
    return tuple(made)


def _but(cell: Cell, chosen: Mapping[str, str]) -> Cell:
    """The cell with these choices; settings of ZFS come beside its own."""
    made = cell.but(**chosen)
    added = made[SETTINGS].values if SETTINGS.field in chosen else ()
    return made.with_settings(dict(cell[SETTINGS].values) | dict(added)) if added else made


def meaningless_cells(cells: Sequence[Cell], chosen: Mapping[str, str]) -> dict[Cell, str]:
    """The cells that make no sense with these choices, and why."""
    why: dict[Cell, str] = {}
    for cell in cells:
        try:
            _but(cell, chosen)
        except ValueError as error:
            why[cell] = str(error)
    return why


def missing_in_version(version: ZfsVersion, cell: Cell) -> str:
    """The features of a cell that this version of ZFS lacks; empty where it has all."""
    for name in sorted(version.lacks & cell[SETTINGS].tunables.keys()):
        return f"OpenZFS {version.name} has no {name}"
    return ""


def missing_in_kernel(linux: LinuxVersion, cell: Cell) -> str:
    """The reason for which a client with this kernel cannot use the cell's filesystem, if any."""
    if not cell[FILESYSTEM].looks_like_zfs:
        return ""
    return why_unfit(zfs_version(DEFAULT), linux)


def _alternatives(cell: Cell, chosen: Mapping[str, str]) -> str:
    """The choices of each of these axes that make sense with this cell."""
    possible = {
        field: [name for name in AXES[field].names if not meaningless_cells([cell], {field: name})]
        for field in chosen
    }
    return "possible there: " + "; ".join(
        f"{field} ({', '.join(names)})" for field, names in possible.items()
    )
