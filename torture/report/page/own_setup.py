"""The page's first question, "I run": every answer that a reader can pick, as data of its script."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.outages import outage_cells
from torture.report.page.sections import Priced
from torture.report.reading.store import Store
from torture.report.setups import Option, SetUp, controls, setups
from torture.report.setups.answers import Answer, Setting, beside, settings_of
from torture.report.setups.sentences import (
    advice_in_words,
    event_in_words,
    lead_in_words,
    outcome_in_words,
    remarks,
    return_in_words,
    tone,
)

_PRICES_MAX = 2
_NO_PRICE = "not measured for this set-up"


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnSetUp:
    """The answers, and the one with which a page begins."""

    setups: tuple[SetUp, ...]
    default: Setting
    data: Markup
    """JSON: `options` of each control, and `answers` as the script of the page reads them."""

    def hosts(self, setup: SetUp) -> list[Option]:
        """The NASes that apply to a set-up."""
        return [option for option in controls().on if setup.on in option.of]


def own_setup(
    store: Store, cells: Sequence[CellFigures], prices: Sequence[Priced]
) -> OwnSetUp | None:
    """None where no set-up's own cell was measured."""
    settings = settings_of(cells)
    if not settings:
        return None
    remedies = {own.figures.cell: own.remedies for own in outage_cells(store.sql, cells)}
    return OwnSetUp(
        setups=setups(),
        default=settings[0],
        data=_json(_data(settings, remedies, prices)),
    )


def _data(
    settings: Sequence[Setting],
    remedies: Mapping[str, Mapping[str, int]],
    prices: Sequence[Priced],
) -> dict[str, Any]:
    """Texts and answers stand once, and are named by their places."""
    texts, answers = _Places(), _Places()
    alike = beside(settings)
    tree: dict[str, Any] = {}
    for own in settings:
        run, on, sync, slog, layout = own.key
        rows = [
            answers.of(
                (
                    answer.happening.name,
                    *(texts.of(part) for part in _parts(answer, own, remedies)),
                    tone(answer),
                    "" if answer.figures is None else answer.figures.cell,
                )
            )
            for answer in own.answers
        ]
        said = (
            advice_in_words(own, alike[own.family]),
            _price(own, prices),
            " ".join(remarks(own)),
        )
        place = tree.setdefault(run, {}).setdefault(on, {}).setdefault(sync, {})
        place.setdefault(slog, {})[layout] = [
            own.answers.index(own.worst),
            *map(texts.of, said),
            rows,
        ]
    return {"texts": texts.all, "answers": answers.all, "settings": tree}


def _parts(
    answer: Answer, setting: Setting, remedies: Mapping[str, Mapping[str, int]]
) -> Iterable[str]:
    return (
        event_in_words(answer),
        lead_in_words(answer),
        outcome_in_words(answer, is_safe=setting.is_safe),
        return_in_words(answer, remedies),
    )


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
