"""The modules of a folder as a registry: each module offers one object or several, without a list.

So a new transport, filesystem, schedule ... is one new file, and no list has to be edited.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

NOT_OFFERS = frozenset({"protocol"})
"""Modules that define the form of the others."""


def offered(package: str, name: str) -> tuple[Any, ...]:
    """The object that each module of a package calls `name`, in the order of the modules' names.

    A module may offer several instead: a tuple by the plural, e.g. `CHOICES` for `CHOICE`. Modules
    whose name starts with an underscore, and those of `NOT_OFFERS`, offer nothing. Raises
    `ImportError` for another module without it: a misspelt offer must not go unnoticed.
    """
    found = []
    folder = importlib.import_module(package)
    for info in sorted(pkgutil.iter_modules(folder.__path__), key=lambda info: info.name):
        if info.name.startswith("_") or info.name in NOT_OFFERS:
            continue
        module = importlib.import_module(f"{package}.{info.name}")
        if hasattr(module, f"{name}S"):
            found += getattr(module, f"{name}S")
        elif hasattr(module, name):
            found.append(getattr(module, name))
        else:
            raise ImportError(f"{module.__name__} does not define {name}", name=module.__name__)
    return tuple(found)
