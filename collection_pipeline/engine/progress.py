"""Where a run stands: plan it, show what the plan says in the state table, and alert about what went wrong."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.explain import Explanation
from collection_pipeline.engine.flight import LastAttempt, PlannedRun, in_flight
from collection_pipeline.engine.lateness import late_jobs
from collection_pipeline.engine.planner import plan
from collection_pipeline.engine.store import RunView


def explained(collection: Collection, run_id: str, planned: Iterable[PlannedRun] = ()) -> tuple[Explanation, RunView]:
    """The run as it stands, decided and ready to be put into words. Reads only.

    `planned` are the live Dagster runs of this run_id; without them, only running jobs count as in flight.
    """
    now = collection.now()
    view = collection.store.run_view(run_id)
    attempts = {job.job_id: LastAttempt(job.dagster_run_id, job.outcome) for job in view.jobs}
    flying = in_flight(planned, collection.graph, attempts, late_jobs(collection.graph, view.opened_at, now))
    state = collection.store.run_state(run_id, collection.graph, flying)
    return Explanation(collection.graph, state, plan(collection.graph, state, now), facts(view, collection)), view


def advance(
    collection: Collection, instance: dg.DagsterInstance, run_id: str, planned: Iterable[PlannedRun] = ()
) -> Explanation:
    """Decide the run and make it so in the state table: statuses, skips, settled or open; alert about what changed."""
    explanation, view = explained(collection, run_id, planned)
