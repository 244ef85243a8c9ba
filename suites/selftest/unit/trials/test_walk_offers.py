"""The files of recovered states: a server is started once, or for each state where it ends between."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from torture.choices.matrix.axes import TRANSPORT
from torture.choices.transports.protocol import Traits
from torture.trials.trial.walk import offers as offers_module
from torture.trials.trial.walk.engines.kernel_engine import KernelEngine
from torture.trials.trial.walk.offers import OfferedFiles


@pytest.mark.parametrize(
    ("serves_until_let_go", "ran"),
    [
        (False, ["publish", "let go", "let go", "publish", "let go"]),
        (True, ["publish", "let go"] * 3),
    ],
)
def test_a_server_that_was_ended_is_started_for_the_next_state(
    serves_until_let_go: bool, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts: list[str] = []
    monkeypatch.setattr(
        offers_module,
        "storage_must",
        lambda _nas, _failure, script, **_words: scripts.append(script),
    )
    transport = SimpleNamespace(
        traits=Traits(ports=(1,), serves_until_let_go=serves_until_let_go),
        publish_script=lambda _options: "publish",
        let_go_script=lambda: "let go",
    )
    trial: Any = SimpleNamespace(transport=transport, volume_options=None, attachment=None)
    files = OfferedFiles(trial)
    first, second = (KernelEngine.__new__(KernelEngine) for _ in range(2))
    first.nas, second.nas = object(), object()  # type: ignore[assignment]
    for engine in (first, first, second):
        with files.shown(engine):
            pass
    assert scripts == ran


def test_servers_that_end_to_let_go_are_the_ones_that_say_so() -> None:
    ending = {
        choice.name
        for choice in TRANSPORT.choices
        if "pkill" in choice.value.let_go_script() and choice.value.traits.gives_files
    }
    assert ending == {
        choice.name for choice in TRANSPORT.choices if choice.value.traits.serves_until_let_go
    }
