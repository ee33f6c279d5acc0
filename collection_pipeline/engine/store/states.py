"""The state of a run as the planner takes it, and the planner's verdict as the state table shows it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from collection_pipeline.engine.planning import state as planner_state
from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.engine.planning.planner import Plan
from collection_pipeline.engine.planning.state import Artifact, JobState
from collection_pipeline.engine.store.database import RETRACTION, advisory_lock
from collection_pipeline.engine.store.part import StorePart
from collection_pipeline.engine.store.references import (
    ARTIFACT_COLUMNS,
    artifact_of,
    inputs_from_json,
    inputs_to_json,
)
from collection_pipeline.engine.store.runs import lock_run, unknown_run
from collection_pipeline.engine.store.schema import artifacts, jobs, runs, unmet_fallbacks


@dataclass(frozen=True, slots=True)
class RunState(planner_state.RunState):
    """The planner's RunState, with what it takes to notice that it went stale.

    `revision` counts the changes of the run; `oldest_fallbacks` is, by upstream of a degrade edge, the oldest as_of
    that its shelf life allows for this run.
    """

    suffix: int = 1
    revision: int = 0
    oldest_fallbacks: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shown:
    """Whether the verdict was written (`applied`; not if the run changed meanwhile), and which jobs it skipped."""

    applied: bool
    skipped: tuple[str, ...] = ()


class States(StorePart):
    """Reading the state that plans are made of, and showing the plans."""

    def run_state(self, run_id: str, graph: Graph, in_flight: Collection[str] = ()) -> RunState:
        """One run as the planner takes it, in a fixed number of queries. Raises `UnknownRunError`.

        `in_flight` names the jobs that a live Dagster run has planned; running jobs are in flight anyway.
        """
        with self.database.read() as connection:
            return load_state(connection, run_id, graph, in_flight)

    def show_statuses(self, state: RunState, plan: Plan, now: datetime, reasons: Mapping[str, str]) -> Shown:
        """Write what `plan`, made on `state`, says into the state table, and settle the run if nothing is left to do.

        `reasons` has the words for the jobs it skips. If the run changed since `state` was read, or is to be settled
        although another one offers it a new fallback, nothing is written: the next plan will see the change.
        """
        unmet = _unmet_fallbacks(state, plan) if plan.settled else []
        with self.database.write() as connection:
            if unmet:
                # A publication either finds this run among those that lack a fallback, or is found here: not neither.
                advisory_lock(connection, RETRACTION)
            run = lock_run(connection, state.run_id)
            if run.revision != state.revision:
                return Shown(applied=False)
            known = {upstream: each for upstream, each in state.fallbacks.items() if upstream in unmet}
            if _fallbacks(connection, unmet, state.moment, state.suffix) != known:
                return Shown(applied=False)
            skipped = _show(connection, state.run_id, plan, now, reasons)
            settled = plan.settled and not skipped
            if settled != (run.settled_at is not None) or skipped:
                connection.execute(
                    runs.update()
                    .where(runs.c.run_id == state.run_id)
                    .values(settled_at=now if settled else None, revision=runs.c.revision + int(bool(skipped)))
                )
            if settled and run.settled_at is None:
                _note_unmet(connection, state, unmet)
            return Shown(True, skipped)


def load_state(connection: sa.Connection, run_id: str, graph: Graph, in_flight: Collection[str] = ()) -> RunState:
    """`States.run_state` inside a transaction."""
    run = connection.execute(sa.select(runs).where(runs.c.run_id == run_id)).one_or_none()
    if run is None:
        raise unknown_run(run_id)
    current = {
        row.job_id: artifact_of(row)
        for row in connection.execute(
            sa.select(*ARTIFACT_COLUMNS).where(artifacts.c.run_id == run_id, artifacts.c.is_current)
        )
    }
    columns = (jobs.c.job_id, jobs.c.outcome, jobs.c.attempted)
    states = {
        row.job_id: JobState(
            row.outcome,
            row.outcome == "running" or row.job_id in in_flight,
            current.get(row.job_id),
            inputs_from_json(row.attempted),
        )
        for row in connection.execute(sa.select(*columns).where(jobs.c.run_id == run_id, ~jobs.c.removed))
    }
    oldest = _oldest_fallbacks(graph, run.moment)
    fallbacks = _fallbacks(connection, list(oldest), run.moment, run.suffix)
    return RunState(
        run_id, run.moment, run.opened_at, states, fallbacks, run.suffix, run.revision, oldest_fallbacks=oldest
    )


def earlier(moment: datetime, suffix: int) -> sa.ColumnElement[bool]:
    """Artifacts of the runs before this one, in the order of runs."""
    return (artifacts.c.moment < moment) | ((artifacts.c.moment == moment) & (artifacts.c.suffix < suffix))


def _oldest_fallbacks(graph: Graph, moment: datetime) -> dict[str, datetime]:
    upstreams = {edge.upstream for job in graph for edge in job.edges if edge.policy == "degrade"}
    shelves = {upstream: graph[upstream].shelf_life for upstream in sorted(upstreams)}
    return {upstream: moment - shelf.fail for upstream, shelf in shelves.items() if shelf is not None}


def _fallbacks(
    connection: sa.Connection, upstreams: Collection[str], moment: datetime, suffix: int
) -> dict[str, Artifact]:
    """One statement for all upstreams; each branch walks an index downwards from the run's moment to its first hit.

    The newest is inside the shelf life if any is, so the planner judges that one alone.
    """
    branches = [
        sa.select(*ARTIFACT_COLUMNS)
        .where(
            artifacts.c.job_id == upstream,
            artifacts.c.is_current,
            artifacts.c.as_of <= moment,
            earlier(moment, suffix),
        )
        .order_by(artifacts.c.as_of.desc(), artifacts.c.moment.desc(), artifacts.c.suffix.desc())
        .limit(1)
        .subquery()
        for upstream in upstreams
    ]
    if not branches:
        return {}
    rows = connection.execute(sa.union_all(*(sa.select(branch) for branch in branches)))
    return {row.job_id: artifact_of(row) for row in rows}


def _show(
    connection: sa.Connection, run_id: str, plan: Plan, now: datetime, reasons: Mapping[str, str]
) -> tuple[str, ...]:
    shown = sa.select(jobs.c.job_id, jobs.c.status).where(jobs.c.run_id == run_id)
    before = {row.job_id: row.status for row in connection.execute(shown)}
    skipped = []
    for job_id, decision in plan.decisions.items():
        if job_id not in before or (before[job_id] == decision.status and not decision.skips):
            continue
        changes: dict[str, Any] = {"status": decision.status}
        if decision.skips:
            skipped.append(job_id)
            changes |= {
                "outcome": "skipped",
                "attempted": inputs_to_json(decision.inputs),
                "reason": reasons.get(job_id),
                "error_kind": None,
                "finished_at": now,
            }
        connection.execute(jobs.update().where(jobs.c.run_id == run_id, jobs.c.job_id == job_id).values(**changes))
    return tuple(skipped)


def _unmet_fallbacks(state: RunState, plan: Plan) -> list[str]:
    """The upstreams whose fallbacks could still bring about an artifact that the run lacks."""
    upstreams = {
        edge.edge.upstream
        for decision in plan.decisions.values()
        if decision.state.current is None
        for edge in decision.edges
        if edge.edge.upstream in state.oldest_fallbacks and edge.edge.policy == "degrade"
    }
    return sorted(upstreams)


def lacks_fallback(job_id: str, as_of: datetime, moment: datetime, suffix: int) -> sa.ColumnElement[bool]:
    """The condition on `runs` of the settled ones that lack an artifact which this fallback might bring about.

    It is of that job, as_of and run. Whatever makes it current opens them again, holding the lock `RETRACTION`, or a
    share of it: none of them settles meanwhile.
    """
    later = (unmet_fallbacks.c.moment > moment) | (
        (unmet_fallbacks.c.moment == moment) & (unmet_fallbacks.c.suffix > suffix)
    )
    lacking = sa.select(unmet_fallbacks.c.run_id).where(
        unmet_fallbacks.c.upstream == job_id, unmet_fallbacks.c.oldest_as_of <= as_of, later
    )
    return runs.c.settled_at.is_not(None) & runs.c.run_id.in_(lacking)


def _note_unmet(connection: sa.Connection, state: RunState, unmet: Collection[str]) -> None:
    """Note which fallbacks the run lacks, so that one that becomes current opens it again."""
    connection.execute(unmet_fallbacks.delete().where(unmet_fallbacks.c.run_id == state.run_id))
    rows = [
        {
            "run_id": state.run_id,
            "upstream": upstream,
            "oldest_as_of": state.oldest_fallbacks[upstream],
            "moment": state.moment,
            "suffix": state.suffix,
        }
        for upstream in unmet
    ]
    if rows:
        connection.execute(unmet_fallbacks.insert(), rows)
