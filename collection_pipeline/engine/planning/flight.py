"""Which jobs are in flight: running, or still to be started by a Dagster run that is not over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.engine.planning.state import Status


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A Dagster run of one run_id that is queued, starting or running, and the jobs selected for it."""

    dagster_run_id: str
    job_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class LastAttempt:
    """The Dagster run that made a job's last attempt, and how that attempt stands."""

    dagster_run_id: str | None
    outcome: Status


def in_flight(
    planned: Iterable[PlannedRun], graph: Graph, attempts: Mapping[str, LastAttempt], late: Collection[str] = ()
) -> frozenset[str]:
    """The jobs that run or will be started without anybody asking again.

    `late`: jobs past their deadline (`lateness.late_jobs`). One that its Dagster run holds back behind an unfinished
    upstream is not in flight, nor is what comes behind it: its edges may have stopped waiting for that upstream, and
    Dagster has not. Should that Dagster run reach it after all, the gate asks the planner again.
    """
    flying = {job_id for job_id, attempt in attempts.items() if attempt.outcome == "running"}
    for run in planned:
        flying |= _still_to_start(run, graph, attempts, late)
    return frozenset(flying)


def _still_to_start(
    run: PlannedRun, graph: Graph, attempts: Mapping[str, LastAttempt], late: Collection[str]
) -> set[str]:
    jobs = [job for job in graph if job.job_id in run.job_ids]
    outcomes = {
        job_id: attempt.outcome for job_id, attempt in attempts.items() if attempt.dagster_run_id == run.dagster_run_id
    }
    # Dagster starts a step once all its upstream steps succeeded: whatever is above a started job was started,
    # although another Dagster run may have made that job's last attempt since.
    started = set(outcomes)
    for job in reversed(jobs):
        if job.job_id in started:
            started.update(job.upstreams)
    never: set[str] = set()
    held_back: set[str] = set()
    coming: set[str] = set()
    unfinished = {job_id for job_id, outcome in outcomes.items() if outcome == "running"}
    for job in jobs:
        upstreams = run.job_ids.intersection(job.upstreams)
        if job.job_id in started:
            if outcomes.get(job.job_id) in ("failed", "skipped"):
                never.add(job.job_id)
        elif upstreams & never:
            never.add(job.job_id)
        else:
            waits_in_vain = job.job_id in late and upstreams & unfinished
            (held_back if waits_in_vain or upstreams & held_back else coming).add(job.job_id)
            unfinished.add(job.job_id)
    return coming
