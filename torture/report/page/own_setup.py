"""The page's first question, "I run": every answer that a reader can pick, as data of its script."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.outages import outage_cells
from torture.report.page.sections import Priced
from torture.report.reading.store import Store
from torture.report.setups import SetUp, controls, setups
from torture.report.setups.answers import Setting, settings_of
from torture.report.setups.sentences import Said, SaidAnswer, all_said, return_in_words, tone

_PRICES_MAX = 2
_NO_PRICE = "not measured for this set-up"


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnSetUp:
    """The answers, and the one with which a page begins."""

    setups: tuple[SetUp, ...]
    first: Said
    data: Markup
    """JSON for the page's script: texts, answers of their places, and settings of these."""


def own_setup(
    store: Store, cells: Sequence[CellFigures], prices: Sequence[Priced]
) -> OwnSetUp | None:
    """None where the own cells of only a few set-ups were measured."""
    said = all_said(settings_of(cells))
    if not said:
        return None
    remedies = {own.figures.cell: own.remedies for own in outage_cells(store.sql, cells)}
    return OwnSetUp(
        setups=setups(),
        first=said[0],
        data=_json(_data(said, remedies, prices)),
    )


def _data(
    said: Sequence[Said],
    remedies: Mapping[str, Mapping[str, int]],
    prices: Sequence[Priced],
) -> dict[str, Any]:
    """Texts and answers stand once, and are named by their places."""
    texts, answers = _Places(), _Places()
    tree: dict[str, Any] = {}
    for own in said:
        run, on, sync, slog, layout = own.setting.key
        place = tree.setdefault(run, {}).setdefault(on, {}).setdefault(sync, {})
        words = (own.advice, _price(own.setting, prices), " ".join(own.remarks))
        place.setdefault(slog, {})[layout] = [
            own.answers.index(own.worst),
            *map(texts.of, words),
            [answers.of(_answer(answer, texts, remedies)) for answer in own.answers],
        ]
    return {"texts": texts.all, "answers": answers.all, "settings": tree}


def _answer(
    said: SaidAnswer, texts: _Places, remedies: Mapping[str, Mapping[str, int]]
) -> tuple[str | int, ...]:
    """The event's name, the places of four texts, the tone, and the cell."""
    own = said.answer
    words = (said.event, said.lead, said.outcome, return_in_words(own, remedies))
    cell = "" if own.figures is None else own.figures.cell
    return (own.happening.name, *map(texts.of, words), tone(own), cell)


def _price(setting: Setting, prices: Sequence[Priced]) -> str:
    """The prices of this sync and SLOG over the same kind of transport."""
    kind = controls().near.kind_of(setting.setup.cell["transport"])
    found = []
    for priced in prices:
        for key in priced.settings:
            transport, sync, slog, *_ = key.split("|")
            if transport in kind and (sync, slog) == (setting.sync.name, setting.slog.name):
                found.append(f"{priced.sentence}.")
                break
    return " ".join(found[:_PRICES_MAX]) or _NO_PRICE


class _Places:
    """Things by their place in a list."""

    def __init__(self) -> None:
        self._places: dict[Any, int] = {}

    def of(self, thing: Any) -> int:
        return self._places.setdefault(thing, len(self._places))

    @property
    def all(self) -> list[Any]:
        return list(self._places)


def _json(data: Any) -> Markup:
    """JSON that no text can leave: HTML ends a script at `</`."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    return Markup(text)
