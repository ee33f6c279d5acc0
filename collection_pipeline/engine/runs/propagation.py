"""From the planner's decisions to Dagster runs: who is gone, what is due, and which request is new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import dagster as dg

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.logs import log_of
from collection_pipeline.engine.planning.planner import Plan
from collection_pipeline.engine.runs.launches import REQUESTED_BY, RUN_ID, is_over, live_runs
from collection_pipeline.engine.runs.progress import advance, announce
from collection_pipeline.engine.runs.releasing import release_abandoned
from collection_pipeline.engine.store import OpenRun, Transition, UnreadableRunError
from collection_pipeline.engine.store.runs import graph_hash
from collection_pipeline.engine.words.outcomes import never_started_reason
from collection_pipeline.engine.words.summary import tick_text

log = log_of("propagation")

SENSOR = "propagation_sensor"

MAX_START_FAILURES = 3
"""A job whose Dagster run ends this often without starting it is failed: somebody has to look."""

FIRST_BACKOFF = timedelta(seconds=5)
"""Pause after the first Dagster run that never started its job; doubled for each further one."""

START_GRACE = timedelta(seconds=10)
"""How long who opened a run has to create its Dagster run: the schedule and `collect run` open it first."""


def propagate(instance: dg.DagsterInstance, collection: Collection) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """One tick: look at every open run, release dead holders, show the statuses, and request what is due.

    With no run open it is two indexed queries.
    """
    alerts: list[Transition] = []
    requests, text = _look(instance, collection, alerts)
    # After all is decided, since a channel may not answer; also when no run is open: one may be about the last run.
    announce(collection, alerts)
    if requests:
        yield from requests
    else:
        yield dg.SkipReason(text)


def _look(
    instance: dg.DagsterInstance, collection: Collection, alerts: list[Transition]
) -> tuple[Sequence[dg.RunRequest], str]:
    """What is due, and what the tick says if nothing is."""
    open_runs = collection.store.open_runs()
    live = live_runs(instance, collection.graph)
    if not open_runs:
        return (), f"Dagster starts {', '.join(sorted(live))}." if live else "No run is open."
    alive = {each.dagster_run_id for runs in live.values() for each in runs}
    release_abandoned(collection, is_over=partial(is_over, instance, live=alive))
    today = graph_hash(collection.graph)
    requests, texts = [], []
    for run in open_runs:
        if run.graph_hash != today:
            collection.store.adopt_graph(run.run_id, collection.graph)
        try:
            explanation = advance(collection, instance, run.run_id, live.get(run.run_id, ()), alerts.extend)
        except UnreadableRunError as error:  # it holds up no other
            log.warning("%s", error)
            texts.append(str(error))
            continue
        is_about_to_start = _is_within(START_GRACE, run.opened_at, collection.now()) and _is_untouched(explanation.plan)
        request = None if is_about_to_start else _request(instance, collection, run, explanation.plan)
        if request is not None:
            requests.append(request)
        texts.append(tick_text(explanation))
    return requests, " | ".join(texts)


def _is_within(pause: timedelta, since: datetime, now: datetime) -> bool:
    """Whether the pause still lasts. Not if it began far ahead: the clock was set back, and would make it hours."""
    return abs(now - since) < pause


def _is_untouched(plan: Plan) -> bool:
    """Whether no job of the run was attempted, nor is any under way."""
    return all(each.state.status == "pending" and not each.state.in_flight for each in plan.decisions.values())


def _request(instance: dg.DagsterInstance, collection: Collection, run: OpenRun, plan: Plan) -> dg.RunRequest | None:
    """One Dagster run for all that is due in a run, under a key that names the attempt: asking twice starts it once."""
    jobs = plan.requests
    if not jobs:
        return None
    run_id, lead = run.run_id, jobs[0]
    counts = collection.store.start_counts(run_id, lead)
    failures = counts.start_failures
    asked = {REQUESTED_BY: SENSOR, "dagster/run_key": run_key(run, lead, counts.attempts, failures)}
    earlier = instance.get_run_records(dg.RunsFilter(tags=asked), limit=1)
    if earlier and earlier[0].dagster_run.is_finished:
        ended = datetime.fromtimestamp(earlier[0].end_time or 0.0, UTC)
        status = earlier[0].dagster_run.status
        cancelled = status is dg.DagsterRunStatus.CANCELED
        # One that succeeded without starting the job met a gate that was shut just then: no reason to give up.
        if cancelled or (status is dg.DagsterRunStatus.FAILURE and failures + 1 >= MAX_START_FAILURES):
            reason = never_started_reason(earlier[0].dagster_run.run_id, failures + 1, cancelled=cancelled)
            collection.store.fail_unstarted(run_id, lead, plan.decisions[lead].inputs, reason, collection.now())
            return None
        if _is_within(FIRST_BACKOFF * 2**failures, ended, collection.now()):
            return None
        collection.store.count_start_failure(run_id, lead)
        failures += 1
    # Dagster may never have heard of a run that the store knows, and one unknown key loses all requests of a tick.
    instance.add_dynamic_partitions(RUN_ID, [run_id])
    return dg.RunRequest(
        run_key=run_key(run, lead, counts.attempts, failures),
        partition_key=run_id,
        asset_selection=[dg.AssetKey(job_id) for job_id in jobs],
        tags={REQUESTED_BY: SENSOR},
    )


def run_key(run: OpenRun, job_id: str, attempts: int, start_failures: int) -> str:
    """What Dagster knows a request by, and runs once. The run's opening is part of it: Dagster may well remember
    another run of this name, one that was pruned since or one of another database."""
    return f"{run.run_id}/{run.opened_at.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}/{job_id}/{attempts}.{start_failures}"
