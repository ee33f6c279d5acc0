"""A small world for the store's tests: four jobs, a clock set by hand, and attempts that the planner decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pandas as pd

from collection_pipeline.engine.checks import CheckOutcome
from collection_pipeline.engine.datasets import Column, Dataset
from collection_pipeline.engine.planning.edges import Edge
from collection_pipeline.engine.planning.graph import Graph, Job, ShelfLife
from collection_pipeline.engine.planning.planner import Plan, plan
from collection_pipeline.engine.planning.state import Inputs
from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.store import Attempt, Holder, Manifest, Published, RunState, Store

UTC_ZONE = ZoneInfo("UTC")

SHELF_LIFE = timedelta(days=3)

GRAPH = Graph.build(
    [
        Job("search"),
        Job(
            "details",
            (Edge("search", policy="hard", on_rerun="follow", why="details of what was found"),),
            shelf_life=ShelfLife(SHELF_LIFE),
        ),
        Job("report", (Edge("details", policy="degrade", on_rerun="follow", why="better old than none"),)),
        Job("archive", (Edge("report", policy="optional", on_rerun="pin", why="keeps what it has"),)),
    ]
)

PLACES = Dataset(
    "places",
    (
        Column("place_id", "text", "which place", nullable=False),
        Column("name", "text", "what it is called"),
        Column("visits", "integer", "how many"),
        Column("score", "number", "how good"),
        Column("is_open", "boolean", "whether it is open"),
        Column("seen_at", "instant", "when it was seen"),
        Column("extra", "json", "everything else"),
        Column("request_id", "text", "the call that brought it", volatile=True),
    ),
    key=("place_id",),
)


def dataset_of(job_id: str) -> Dataset:
    """Each job's rows lie in a data set of its own name."""
    return Dataset(f"{job_id}_places", PLACES.columns, PLACES.key)


def places(*names: str, request_id: str = "r-1") -> pd.DataFrame:
    """A frame of `PLACES`, one row a name."""
    size = len(names)
    return pd.DataFrame(
        {
            "place_id": pd.array([f"0x{number:x}" for number in range(size)], dtype="str"),
            "name": pd.array(list(names), dtype="str"),
            "visits": pd.array(range(size), dtype="Int64"),
            "score": pd.array([4.5] * size, dtype="float64"),
            "is_open": pd.array([True] * size, dtype="boolean"),
            "seen_at": pd.array([datetime(2026, 11, 29, tzinfo=UTC)] * size, dtype="datetime64[us, UTC]"),
            "extra": pd.array(['{"a":1}'] * size, dtype="str"),
            "request_id": pd.array([request_id] * size, dtype="str"),
        }
    )


def holder(name: str = "dagster-1", pid: int = 1) -> Holder:
    return Holder(name, "host-a", pid, 1000.25)


def passes() -> list[CheckOutcome]:
    return [CheckOutcome("rows", True, "hard", "there are rows")]


def rejects() -> list[CheckOutcome]:
    return [CheckOutcome("rows", False, "hard", "there are no rows")]


def moment_of(run_id: str) -> datetime:
    return RunId.parse(run_id).moment(UTC_ZONE)


@dataclass
class World:
    """The store, and what a scheduler and a launcher would do with it."""

    store: Store
    graph: Graph = GRAPH
    now: datetime = datetime(2026, 11, 29, 6, tzinfo=UTC)
    source: str = "emulator"
    dagster_runs: int = field(default=0)

    def open(self, *run_ids: str) -> None:
        for run_id in run_ids:
            assert self.store.open_run(RunId.parse(run_id), UTC_ZONE, self.graph, self.now)

    def state(self, run_id: str) -> RunState:
        return self.store.run_state(run_id, self.graph)

    def plan(self, run_id: str) -> Plan:
        return plan(self.graph, self.state(run_id), self.now)

    def tick(self, run_id: str) -> Plan:
        """Plan the run and show it, as the sensor does, until there is nothing new to show."""
        while True:
            state = self.state(run_id)
            decided = plan(self.graph, state, self.now)
            shown = self.store.show_statuses(state, decided, self.now, {job.job_id: "words" for job in self.graph})
            assert shown.applied
            if not shown.skipped:
                return decided

    def claim(
        self,
        run_id: str,
        job_id: str,
        by: Holder | None = None,
        inputs: Inputs | None = None,
        *,
        takes_over: bool = False,
        launched_at: datetime | None = None,
    ) -> Attempt:
        self.dagster_runs += 1

        def decide(state: RunState) -> Inputs:
            decision = plan(self.graph, state, self.now).decisions[job_id]
            assert inputs is not None or decision.readiness == "run", decision.readiness
            return decision.inputs if inputs is None else inputs

        return self.store.claim(
            run_id,
            job_id,
            by or holder(f"dagster-{self.dagster_runs}"),
            self.graph,
            source=self.source,
            decide=decide,
            is_over=lambda _holder: takes_over,
            now=lambda: self.now,
            launched_at=launched_at,
        )

    def publish(
        self,
        attempt: Attempt,
        frames: Iterable[pd.DataFrame] | None = None,
        checks: Sequence[CheckOutcome] | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> Published:
        return self.store.publish(
            attempt,
            dataset_of(attempt.job_id),
            [places("Reykjavík", "東京")] if frames is None else frames,
            lambda _staged: passes() if checks is None else checks,
            manifest=lambda version: Manifest(self.source, 2, 1, metadata or {}, [{"name": f"v{version}.html"}]),
            now=lambda: self.now,
        )

    def done(self, run_id: str, *job_ids: str, names: tuple[str, ...] = ("Reykjavík", "東京")) -> list[Published]:
        """Claim and publish each of the jobs."""
        return [self.publish(self.claim(run_id, job_id), [places(*names)]) for job_id in job_ids]

    def fail(self, run_id: str, job_id: str) -> None:
        assert self.store.fail(self.claim(run_id, job_id), "no answer", "transient", self.now)

    def statuses(self, run_id: str) -> dict[str, str]:
        return {job.job_id: job.status for job in self.store.run_view(run_id).jobs}
