"""yours: pure functions from answers to data frames and a report. No Dagster, no network, no clock, no environment.

The modules are imported when they are first used (`steps.search.rows`): they bring pandas, and loading the definitions
must not.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collection_pipeline.steps import detail, news, report, search

__all__ = ["detail", "news", "report", "search"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
