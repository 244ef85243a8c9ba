"""The terms of cells: which transports tear sectors or keep names, and whose client lives."""

from __future__ import annotations

import pytest

from torture.choices.matrix.axes import TRANSPORT
from torture.choices.matrix.cell_terms import terms_of
from torture.choices.matrix.cells import Cell
from torture.oracles.verdict.terms import Terms

FILES = ("nfs3", "nfs4", "ganesha", "smb", "samba")


def test_sectors_of_files_tear_and_a_disk_keeps_its_own_whole() -> None:
    traits = {choice.name: choice.value.traits for choice in TRANSPORT.choices}
    assert {name for name, has in traits.items() if has.tears_sectors} == set(FILES)
    for name in FILES:
        terms = terms_of(Cell.parse(f"{name}-always-noslog-files-bothdie"))
        is_knfsd, is_nfs = name in ("nfs3", "nfs4"), name not in ("smb", "samba")
        assert terms == Terms(
            tears_sectors=True, names_are_stable=is_knfsd, repeats_requests=is_nfs
        )


@pytest.mark.parametrize(
    ("name", "is_safe"),
    [
        *(
            (f"{files}-standard-noslog-files-bothdie", True)
            for files in ("smb", "samba", "ganesha")
        ),
        ("smb-standard-noslog-files-clientlater", True),
        ("smb-standard-plp-files-bothdie", True),
        # theory lets these lose content, too
        ("smb-standard-noslog-files-nasonly", False),
        ("smb-standard-lost-files-bothdie", False),
        ("smb-standard-noslog-zilnocacheflush-files-bothdie", False),
        ("smb-disabled-noslog-files-bothdie", False),
        # and these may lose no name
        ("smb-always-noslog-files-bothdie", False),
        ("nfs4-standard-noslog-files-bothdie", False),
        ("nfs4-export_async-standard-noslog-files-bothdie", False),
    ],
)
def test_volatile_names_excuse_no_content(name: str, is_safe: bool) -> None:
    assert terms_of(Cell.parse(name)).content_is_safe is is_safe


@pytest.mark.parametrize(
    ("fate", "client_lives"), [("nasonly", True), ("bothdie", False), ("clientlater", False)]
)
def test_a_client_lives_where_the_nas_alone_is_cut(fate: str, client_lives: bool) -> None:
    cell = Cell.parse(f"iscsi-always-noslog-ext4-{fate}")
    assert terms_of(cell) == Terms(client_lives=client_lives)
    assert terms_of(cell, is_replay=True) == Terms(client_lives=client_lives, is_replay=True)
