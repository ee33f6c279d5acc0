"""Everything one collection works with: its graph, store, source and settings, opened when first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from collection_pipeline.engine.datasets import Dataset
from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.sources.contract import Source

if TYPE_CHECKING:
    from upath import UPath

    from collection_pipeline.engine.store import Store, Transition


def silent(job_id: str, ended: int, known: int) -> None:
    """Report no progress: what a Dagster step does, since its log is no terminal."""


@dataclass(frozen=True)
class Collection:
    """What assets, sensor and command line share. `max_credits` bounds each run (None: unbounded).

    `settings` are for the bodies of the assets: queries and languages are nothing that the engine knows of.
    `timezone` is for runs to be opened; each keeps the one it was opened in. `open_source` is given the run's moment in
    the run's zone; `send` announces episodes and never raises; `now` gives aware instants.
    """

    graph: Graph
    datasets: Mapping[str, Dataset]
    timezone: ZoneInfo
    settings: Any
    max_credits: int | None
    source_label: str
    open_store: Callable[[], Store]
    open_source: Callable[[datetime], AbstractContextManager[Source]]
    open_reports: Callable[[], UPath]
    send: Callable[[Store, Sequence[Transition]], None]
    now: Callable[[], datetime]
    report_progress: Callable[[str, int, int], None] = silent

    @cached_property
    def store(self) -> Store:
        return self.open_store()

    def alert(self, transitions: Sequence[Transition]) -> None:
        """Announce episodes that opened or healed."""
        self.send(self.store, transitions)

    @cached_property
    def reports(self) -> UPath:
        return self.open_reports()
