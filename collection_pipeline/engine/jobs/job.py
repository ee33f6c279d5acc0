"""What the body of an asset is given, and what it gives back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from collection_pipeline.engine.datasets import Dataset
from collection_pipeline.engine.planning.state import Artifact, Status
from collection_pipeline.sources.contract import ApiRequest

if TYPE_CHECKING:
    import pandas as pd

    from collection_pipeline.engine.jobs.spending import Answers, PaidCalls
    from collection_pipeline.engine.store import Ancestor, Store


@dataclass(frozen=True)
class Input:
    """One consumed artifact: its identity, and its rows when asked for."""

    artifact: Artifact
    dataset: Dataset
    store: Store

    def frame(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """All rows (or only `columns`), in the data set's types."""
        return self.store.read(self.dataset, self.artifact, columns)

    def frames(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """The rows in chunks, for inputs too large to hold."""
        return self.store.read_chunks(self.dataset, self.artifact, columns)


@dataclass(frozen=True)
class JobContext:
    """The run and job that a body works for.

    `moment` is the instant the run speaks of, `as_of` the oldest among it and the inputs, `collected_at` when the last
    of what the inputs were made from was collected (all UTC), `timezone` the zone of the run's days. `lineage` is all
    that the inputs stand on, upstreams first; `missing` says how an upstream that was left out stands, None for
    one that was not. `settings` are those that the collection was made with, which the engine passes on unread.
    """

    run_id: str
    job_id: str
    moment: datetime
    as_of: datetime
    collected_at: datetime
    timezone: tzinfo
    settings: Any
    calls: PaidCalls
    lineage: Sequence[Ancestor]
    missing: Callable[[str], Status | None]
    previous: Callable[[Dataset], Input | None]
    """The newest usable artifact of a data set's job in an earlier run, to compare with; None in the first run."""

    def fetch(self, requests: Iterable[ApiRequest]) -> Answers:
        """Buy the answers to `requests`, reusing what unfinished attempts of this job already paid for."""
        return self.calls.fetch(requests)


@dataclass(frozen=True, slots=True)
class Losses:
    """What did not make it into rows: dropped rows by reason, values made null by column.

    `found`, for the check `Fruitful`: how many rows came of each thing that was asked for and answered, zeros included.
    """

    dropped: Counter[str] = field(default_factory=Counter)
    nulled: Counter[str] = field(default_factory=Counter)
    found: dict[str, int] = field(default_factory=dict)

    def by_reason(self) -> dict[str, int]:
        """What was lost, as the manifest keeps it: dropped rows by reason, and `nulled_<column>`."""
        return {**self.dropped, **{f"nulled_{column}": count for column, count in self.nulled.items()}}

    def __add__(self, other: Losses) -> Losses:
        found = {name: self.found.get(name, 0) + other.found.get(name, 0) for name in {**self.found, **other.found}}
        return Losses(self.dropped + other.dropped, self.nulled + other.nulled, found)


Part = tuple["pd.DataFrame", Losses]
"""Some rows in the data set's exact types, and what was lost on the way to them."""


@dataclass(frozen=True)
class Product:
    """What a body returns when rows are not all: files published with the version, and metadata for people.

    `parts` may be a generator, so that a large artifact never has to fit in memory.
    """

    parts: Iterable[Part]
    files: Mapping[str, bytes] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
