"""From the planner's decisions to Dagster runs: who is gone, what is due, and which request is new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import dagster as dg

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.planning.flight import PlannedRun
from collection_pipeline.engine.planning.lateness import late_jobs
from collection_pipeline.engine.planning.planner import Plan
from collection_pipeline.engine.runs.launches import REQUESTED_BY, RUN_ID, is_over, live_runs
from collection_pipeline.engine.runs.progress import advance, announce
from collection_pipeline.engine.runs.releasing import release_abandoned
from collection_pipeline.engine.store import OpenRun, Transition
from collection_pipeline.engine.store.runs import graph_hash
from collection_pipeline.engine.words.outcomes import never_started_reason
from collection_pipeline.engine.words.summary import tick_text

SENSOR = "propagation_sensor"

MAX_START_FAILURES = 3
"""A job whose Dagster run ends this often without starting it is failed: somebody has to look."""

FIRST_BACKOFF = timedelta(seconds=5)
"""Pause after the first Dagster run that never started its job; doubled for each further one."""

START_GRACE = timedelta(seconds=10)
"""How long who opened a run has to create its Dagster run: the schedule and `collect run` open it first."""


@dataclass(frozen=True, slots=True)
class Tick:
    """What one look at the open runs led to. `waiting`: something is still to come, so another look is worth it."""

    requests: Sequence[dg.RunRequest]
    waiting: bool
    text: str


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at a run saw, and what came of it: `waiting` as in `Tick`, `text` for the tick."""

    revision: int
    planned: Sequence[PlannedRun]
    late: frozenset[str]
    waiting: bool
    text: str

    def still_holds(self, run: OpenRun, planned: Sequence[PlannedRun], late: frozenset[str]) -> bool:
        """Whether the next look would see the same."""
        return (self.revision, self.planned, self.late) == (run.revision, planned, late)


def propagate(instance: dg.DagsterInstance, collection: Collection, seen: dict[str, Look]) -> Tick:
    """Look once at every open run: release dead holders, show the statuses, and request what is due.

    `seen` are the last looks of this tick, by run_id; a run that has not changed since is not decided again. What other
    runs offer it as a fallback meanwhile is seen by the next tick.
    """
    alerts: list[Transition] = []
    tick = _look(instance, collection, seen, alerts)
    # After all is decided, since a channel may not answer; also when no run is open: one may be about the last run.
    announce(collection, alerts)
    return tick


def _look(
    instance: dg.DagsterInstance, collection: Collection, seen: dict[str, Look], alerts: list[Transition]
) -> Tick:
    open_runs = collection.store.open_runs()
    live = live_runs(instance, collection.graph)
    if not open_runs:
        # A Dagster run that is about to open one is worth waiting for: its first job may fail before the next tick.
        return Tick((), bool(live), f"Dagster starts {', '.join(sorted(live))}." if live else "No run is open.")
    alive = {each.dagster_run_id for runs in live.values() for each in runs}
    release_abandoned(collection, is_over=partial(is_over, instance, live=alive))
    today = graph_hash(collection.graph)
    requests: list[dg.RunRequest] = []
    for run in open_runs:
        planned = live.get(run.run_id, [])
        late = late_jobs(collection.graph, run.opened_at, collection.now())
        last = seen.pop(run.run_id, None)
        if last is not None and last.still_holds(run, planned, late):
            seen[run.run_id] = last
            continue
        if run.graph_hash != today:
            collection.store.adopt_graph(run.run_id, collection.graph)
        explanation = advance(collection, instance, run.run_id, planned, alerts.extend)
        is_about_to_start = _is_within(START_GRACE, run.opened_at, collection.now()) and _is_untouched(explanation.plan)
        request = None if is_about_to_start else _request(instance, collection, run, explanation.plan)
        if request is not None:
            requests.append(request)
        # What waits for its next try, or for whoever opened the run, becomes due by the clock alone.
        revision = -1 if explanation.plan.requests else run.revision
        waiting = not explanation.plan.settled
        seen[run.run_id] = Look(revision, planned, late, waiting, tick_text(explanation))
    looks = [seen[run.run_id] for run in open_runs]
    return Tick(requests, any(look.waiting for look in looks), " | ".join(look.text for look in looks))


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
