"""What several subjects work on: a run with a search in it, and the way `detail_pages` goes from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pandas as pd

from collection_pipeline.assets import ASSETS
from collection_pipeline.datasets import DETAIL_PAGES, SEARCH_RESULTS
from collection_pipeline.engine.checks import Check, Coverage, Evidence, Schema, UniqueKey, Volume, audit
from collection_pipeline.engine.datasets import DTYPES
from collection_pipeline.engine.holders import Holder, this_process
from collection_pipeline.engine.jobs.asset import graph_of
from collection_pipeline.engine.jobs.gate import gate
from collection_pipeline.engine.jobs.schema_check import checked
from collection_pipeline.engine.jobs.spending import Answers, PaidCalls
from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.store import Attempt, Manifest, Published, Store
from collection_pipeline.sources.contract import Source
from collection_pipeline.steps import detail

RUN = RunId.parse("2026-11-29")
NOW = datetime(2026, 11, 29, 6, tzinfo=UTC)
ZONE = ZoneInfo("UTC")
GRAPH = graph_of(ASSETS)
CHECKS: tuple[Check, ...] = (Schema(), UniqueKey(DETAIL_PAGES.key), Coverage(hard=0.8), Volume())


def found(places: int) -> pd.DataFrame:
    """What a search of this many distinct places would have found."""
    numbers = range(places)
    values = {
        "query": "tea house (en, gb)",
        "q": "tea house",
        "hl": "en",
        "gl": "gb",
        "name": "Jade Leaf Tea House",
        "feature_id": [f"0x47d8a00baf21de75:0x{number:x}" for number in numbers],
        "rank": [number + 1 for number in numbers],
        "page": [number // 20 + 1 for number in numbers],
        "request_id": [f"search-{number // 20}" for number in numbers],
        "fetched_at": NOW,
    }
    return pd.DataFrame(
        {
            column.name: pd.Series(values.get(column.name), index=numbers, dtype=DTYPES[column.kind])
            for column in SEARCH_RESULTS.columns
        }
    )


def searched(store: Store, places: int) -> None:
    """Open the run and publish its search."""
    store.open_run(RUN, ZONE, GRAPH, NOW)
    store.publish(
        claimed(store, SEARCH_RESULTS.name),
        SEARCH_RESULTS,
        [found(places)],
        lambda _: [],
        manifest=lambda _: Manifest(),
        now=lambda: NOW,
    )


def claimed(store: Store, job_id: str) -> Attempt:
    """The job, taken by this process."""
    return store.claim(
        str(RUN),
        job_id,
        Holder("benchmark", *this_process()),
        GRAPH,
        source="benchmark",
        decide=gate(GRAPH, job_id, automatic=False, now=NOW),
        is_over=lambda _: True,
        now=lambda: NOW,
    )


@dataclass
class Details:
    """`detail_pages` without Dagster: fetch through the ledger, then write, audit and publish."""

    store: Store
    source: Callable[[], Source]

    def __post_init__(self) -> None:
        self._attempt = claimed(self.store, DETAIL_PAGES.name)
        search = self._attempt.inputs[SEARCH_RESULTS.name]
        assert search is not None
        self._found = self.store.read(SEARCH_RESULTS, search, detail.NEEDED)
        self._calls = PaidCalls(self.store, self.source, self._attempt, None, lambda *_: None)

    def fetch(self) -> Answers:
        """Buy every answer; they are in the ledger when this returns."""
        return self._calls.fetch(detail.requests(self._found))

    def publish(self, answers: Answers) -> Published:
        """Make the answers a version that others can read."""
        errors: list[str] = []
        frames = (parsed.rows for parsed in detail.rows(self._found, answers))
        return self.store.publish(
            self._attempt,
            DETAIL_PAGES,
            checked(frames, DETAIL_PAGES, errors),
            lambda staged: audit(CHECKS, Evidence(staged, self._calls.counts)),
            manifest=lambda _: Manifest(),
            now=lambda: NOW,
        )
