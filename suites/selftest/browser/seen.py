"""A page in a browser, and whatever it did that it should not have done."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Dialog, Page

DEADLINE_MS = 15_000
SCREEN_PX = 900
"""The height of the pages that are opened."""


class Seen:
    """A page that is open; `complaints` are of its console, `requests` every address it asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.set_default_timeout(DEADLINE_MS)
        page.on(
            "console", lambda message: self.complaints.append(f"{message.type}: {message.text}")
        )
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", self._refuse)
        page.on("request", lambda request: self.requests.append(request.url))

    def _refuse(self, dialog: Dialog) -> None:
        self.complaints.append("a dialog")
        dialog.dismiss()

    def open_all(self) -> None:
        """Open every fold of the page."""
        self.page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")

    def bottom_of(self, selector: str) -> float:
        """Where an element ends, in pixels below the top of the page."""
        bottom: float = self.page.locator(selector).evaluate(
            "one => one.getBoundingClientRect().bottom + scrollY"
        )
        return bottom

    def cells(self) -> list[str]:
        """The configurations in the list as a reader sees them: in order, without the hidden ones."""
        names: list[str] = self.page.eval_on_selector_all(
            "#cells tbody tr",
            "rows => rows.filter(row => row.checkVisibility()).map(row => row.dataset.cell)",
        )
        return names


Open = Callable[..., Seen]
"""Opens a file, with a state behind its `#` and a width in pixels."""
