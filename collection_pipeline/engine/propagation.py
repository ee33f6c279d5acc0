"""From the planner's decisions to Dagster runs: who is gone, what is due, and which request is new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.launches import REQUESTED_BY, live_runs
from collection_pipeline.engine.outcomes import never_started_reason
from collection_pipeline.engine.planner import Plan
from collection_pipeline.engine.progress import advance, release_abandoned
from collection_pipeline.engine.store.runs import graph_hash
from collection_pipeline.engine.summary import tick_text

SENSOR = "propagation_sensor"

MAX_START_FAILURES = 3
"""A job whose Dagster run ends this often without starting it is failed: somebody has to look."""

FIRST_BACKOFF = timedelta(seconds=5)
"""Pause after the first Dagster run that never started its job; doubled for each further one."""


@dataclass(frozen=True, slots=True)
class Tick:
    """What one look at the open runs led to. `waiting`: something is still to come, so another look is worth it."""

    requests: Sequence[dg.RunRequest]
    waiting: bool
    text: str


def propagate(instance: dg.DagsterInstance, collection: Collection) -> Tick:
    """Look once at every open run: release dead holders, show the statuses, and request what is due."""
    open_runs = collection.store.open_runs()
    if not open_runs:
        return Tick((), False, "No run is open.")
    live = live_runs(instance, collection.graph)
    today = graph_hash(collection.graph)
    requests: list[dg.RunRequest] = []
    lines: list[str] = []
    waiting = False
    for run in open_runs:
        if run.graph_hash != today:
            collection.store.adopt_graph(run.run_id, collection.graph)
        release_abandoned(collection, instance, run.run_id)
        explanation = advance(collection, instance, run.run_id, live.get(run.run_id, ()))
        request = _request(instance, collection, run.run_id, explanation.plan)
        if request is not None:
            requests.append(request)
        waiting = waiting or not explanation.plan.settled
        lines.append(tick_text(explanation))
    return Tick(requests, waiting, " | ".join(lines))


def _request(instance: dg.DagsterInstance, collection: Collection, run_id: str, plan: Plan) -> dg.RunRequest | None:
    """One Dagster run for all that is due in a run, under a key that names the attempt: asking twice starts it once."""
    jobs = plan.requests
    if not jobs:
        return None
    lead = jobs[0]
    counts = collection.store.start_counts(run_id, lead)
    failures = counts.start_failures
    earlier = instance.get_run_records(
        dg.RunsFilter(tags={"dagster/run_key": _key(run_id, lead, counts.attempts, failures)}), limit=1
    )
    if earlier and earlier[0].dagster_run.is_finished:
        ended = datetime.fromtimestamp(earlier[0].end_time or 0.0, UTC)
        cancelled = earlier[0].dagster_run.status is dg.DagsterRunStatus.CANCELED
        if cancelled or failures + 1 >= MAX_START_FAILURES:
            reason = never_started_reason(earlier[0].dagster_run.run_id, failures + 1, cancelled=cancelled)
            collection.store.fail_unstarted(run_id, lead, plan.decisions[lead].inputs, reason, collection.now())
            return None
        if collection.now() < ended + FIRST_BACKOFF * 2**failures:
            return None
        collection.store.count_start_failure(run_id, lead)
        failures += 1
    return dg.RunRequest(
        run_key=_key(run_id, lead, counts.attempts, failures),
        partition_key=run_id,
        asset_selection=[dg.AssetKey(job_id) for job_id in jobs],
        tags={REQUESTED_BY: SENSOR},
    )


def _key(run_id: str, job_id: str, attempts: int, start_failures: int) -> str:
    return f"{run_id}/{job_id}/{attempts}.{start_failures}"
