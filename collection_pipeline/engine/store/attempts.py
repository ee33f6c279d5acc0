"""Attempts: who works on which job, from the claim to its end. At most one at a time for a job of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

import sqlalchemy as sa

from collection_pipeline.engine.holders import Holder
from collection_pipeline.engine.planning.graph import Graph, Job
from collection_pipeline.engine.planning.state import Inputs, same_inputs
from collection_pipeline.engine.store.errors import HeldError, LostClaimError, MadeMeanwhileError, UnknownJobError
from collection_pipeline.engine.store.part import StorePart
from collection_pipeline.engine.store.references import inputs_from_json, inputs_to_json
from collection_pipeline.engine.store.runs import lock_run, touch, zone_of
from collection_pipeline.engine.store.schema import jobs
from collection_pipeline.engine.store.states import RunState, load_state
from collection_pipeline.engine.words.outcomes import ABANDONED

RESERVATION_IN_DOUBT = {
    "credits_possibly_billed": jobs.c.credits_possibly_billed + jobs.c.credits_reserved,
    "credits_reserved": 0,
}
"""What an attempt leaves reserved, it had sent requests for, and nobody saw the answers: they may have been billed."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a job of a run, as `claim` granted it.

    `number` counts the attempts at this job from 1. `inputs` is what it consumes, `source` the label of the source it
    asks. Answers in the ledger of that source and of the generations `oldest_generation` to `generation` are its own to
    reuse; new ones enter as `generation`.
    """

    run_id: str
    job: Job
    number: int
    holder: Holder
    source: str
    inputs: Inputs
    moment: datetime
    timezone: tzinfo
    suffix: int
    started_at: datetime
    generation: int
    oldest_generation: int

    @property
    def job_id(self) -> str:
        return self.job.job_id

    @property
    def as_of(self) -> datetime:
        """The moment that what it makes speaks of: the oldest among its run and its inputs."""
        return min([self.moment, *(each.as_of for each in self.inputs.values() if each is not None)])

    @property
    def degraded(self) -> bool:
        """Whether what it makes stands on older data than its run's."""
        return any(each.stands_on_older_data(self.run_id) for each in self.inputs.values() if each is not None)


class RunningJob(NamedTuple):
    """A row of the state table that says running, and who says so."""

    run_id: str
    job_id: str
    holder: Holder
    since: datetime


class StartCounts(NamedTuple):
    """`attempts` that started, and `start_failures`: Dagster runs since then that ended without starting the job."""

    attempts: int
    start_failures: int


class Attempts(StorePart):
    """Claiming a job, failing it, keeping it for another try, and clearing up after those who cannot any more."""

    def claim(
        self,
        run_id: str,
        job_id: str,
        holder: Holder,
        graph: Graph,
        *,
        source: str,
        decide: Callable[[RunState], Inputs],
        is_over: Callable[[Holder], bool],
        now: Callable[[], datetime],
        launched_at: datetime | None = None,
    ) -> Attempt:
        """Take the job for `holder`, in one transaction with the decision what it consumes.

        `decide` gets the state as it is under the lock and returns the inputs, or raises: then nothing was written. A
        job that runs under another Dagster run raises `HeldError`, unless `is_over` says of that holder that it is
        gone; under the same Dagster run this is a retry of the same attempt. One that another Dagster run made of the
        same inputs since `launched_at`, when somebody asked for this attempt, raises `MadeMeanwhileError`. `now` is
        asked under the lock, which may be long in coming. Reopens the run. Raises `UnknownRunError` and
        `UnknownJobError`.
        """
        with self.database.write() as connection:
            run = lock_run(connection, run_id)
            row = _lock_job(connection, run_id, job_id)
            held = holder_of(row) if row.outcome == "running" else None
            is_retry = held is not None and held.dagster_run_id == holder.dagster_run_id
            if held is not None and not is_retry and not is_over(held):
                raise HeldError(run_id, job_id, held, row.started_at)
            begun = now()
            inputs = dict(decide(load_state(connection, run_id, graph)))
            if launched_at is not None:
                _refuse_if_made_meanwhile(row, holder, inputs, launched_at, begun)
            attempt = Attempt(
                run_id=run_id,
                job=graph[job_id],
                number=row.attempt if is_retry else row.attempt + 1,
                holder=holder,
                source=source,
                inputs=inputs,
                moment=run.moment,
                timezone=zone_of(run),
                suffix=run.suffix,
                started_at=row.started_at if is_retry else begun,
                generation=row.generation,
                # What an attempt adopted is for its own retries: the next one fetches anew what was published.
                oldest_generation=row.oldest_generation if is_retry else row.generation,
            )
            connection.execute(
                jobs.update()
                .where(_is_job(run_id, job_id))
                .values(
                    status="running",
                    outcome="running",
                    attempted=inputs_to_json(inputs),
                    attempt=attempt.number,
                    started_at=attempt.started_at,
                    finished_at=None,
                    reason=None,
                    error_kind=None,
                    start_failures=0,
                    oldest_generation=attempt.oldest_generation,
                    **RESERVATION_IN_DOUBT,
                    **dataclasses.asdict(holder),
                )
            )
            touch(connection, [run_id])
            return attempt

    def fail(self, attempt: Attempt, reason: str, kind: str, now: datetime) -> bool:
        """End the attempt as failed, for `reason`, with `kind` as the word for it. False: it no longer held the job."""
        return self._fail(attempt.run_id, attempt.job_id, holds(attempt), reason=reason, kind=kind, now=now)

    def await_retry(self, attempt: Attempt) -> None:
        """Note that the attempt is between two tries: its process may go, and only its Dagster run ends it."""
        between = jobs.update().where(_is_job(attempt.run_id, attempt.job_id), holds(attempt))
        with self.database.write() as connection:
            connection.execute(between.values(pid=None, process_started_at=None))

    def running(self, run_id: str | None = None) -> list[RunningJob]:
        """All running jobs, of one run or of all; an index of just those."""
        query = sa.select(jobs).where(jobs.c.outcome == "running").order_by(jobs.c.run_id, jobs.c.job_id)
        if run_id is not None:
            query = query.where(jobs.c.run_id == run_id)
        with self.database.read() as connection:
            return [
                RunningJob(row.run_id, row.job_id, holder_of(row), row.started_at) for row in connection.execute(query)
            ]

    def fail_abandoned(
        self, run_id: str, job_id: str, holder: Holder, reason: str, now: datetime, *, kind: str = ABANDONED
    ) -> bool:
        """Fail a job whose holder is over. False, and nothing written, if it ended or changed hands."""
        return self._fail(run_id, job_id, _held_by(holder), reason=reason, kind=kind, now=now)

    def start_counts(self, run_id: str, job_id: str) -> StartCounts:
        """How often the job was attempted, and how many Dagster runs since ended without starting it."""
        query = sa.select(jobs.c.attempt, jobs.c.start_failures).where(_is_job(run_id, job_id))
        with self.database.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise _unknown_job(run_id, job_id)
        return StartCounts(row.attempt, row.start_failures)

    def count_start_failure(self, run_id: str, job_id: str) -> None:
        """Count a Dagster run that ended without starting this job. An attempt that does start resets the count."""
        with self.database.write() as connection:
            unstarted = jobs.update().where(_is_job(run_id, job_id), jobs.c.outcome != "running")
            connection.execute(unstarted.values(start_failures=jobs.c.start_failures + 1))

    def fail_unstarted(self, run_id: str, job_id: str, inputs: Inputs, reason: str, now: datetime) -> bool:
        """Fail a job that nobody managed to start, as if it had attempted `inputs`: new inputs start it again.

        False, and nothing written, if it runs after all.
        """
        with self.database.write() as connection:
            lock_run(connection, run_id)
            failed = connection.execute(
                jobs.update()
                .where(_is_job(run_id, job_id), jobs.c.outcome != "running")
                .values(
                    status="failed",
                    outcome="failed",
                    attempted=inputs_to_json(inputs),
                    # Counted, so that what starts it again is not taken for the request that was given up.
                    attempt=jobs.c.attempt + 1,
                    reason=reason,
                    error_kind="not_started",
                    finished_at=now,
                    start_failures=0,
                )
            )
            if failed.rowcount == 1:
                touch(connection, [run_id])
            return failed.rowcount == 1

    def _fail(
        self, run_id: str, job_id: str, still: sa.ColumnElement[bool], *, reason: str, kind: str, now: datetime
    ) -> bool:
        with self.database.write() as connection:
            lock_run(connection, run_id)
            ended = connection.execute(
                jobs.update()
                .where(_is_job(run_id, job_id), still)
                .values(
                    status="failed",
                    outcome="failed",
                    reason=reason,
                    error_kind=kind,
                    finished_at=now,
                    **RESERVATION_IN_DOUBT,
                )
            )
            if ended.rowcount == 1:
                touch(connection, [run_id])
            return ended.rowcount == 1


def holder_of(row: sa.Row[Any]) -> Holder:
    """The holder in a row of `jobs`."""
    return Holder(row.dagster_run_id, row.host, row.pid, row.process_started_at)


def holds(attempt: Attempt) -> sa.ColumnElement[bool]:
    """The condition on `jobs` under which this attempt still holds its job."""
    return (jobs.c.attempt == attempt.number) & _held_by(attempt.holder)


def check_held(connection: sa.Connection, attempt: Attempt) -> None:
    """Raises `LostClaimError` if the attempt does not hold its job any more."""
    same = _is_job(attempt.run_id, attempt.job_id)
    if not connection.execute(sa.select(sa.exists().where(same, holds(attempt)))).scalar_one():
        raise lost_claim(attempt)


def lost_claim(attempt: Attempt) -> LostClaimError:
    return LostClaimError(
        f"Attempt {attempt.number} at {attempt.job_id} of run {attempt.run_id} no longer holds the job: it was ended,"
        f" or another Dagster run took over. Nothing was published. See: collect status {attempt.run_id}"
    )


def _held_by(holder: Holder) -> sa.ColumnElement[bool]:
    return (
        (jobs.c.outcome == "running")
        & (jobs.c.dagster_run_id == holder.dagster_run_id)
        & (jobs.c.host == holder.host)
        & (jobs.c.pid == holder.pid)
    )


def _is_job(run_id: str, job_id: str) -> sa.ColumnElement[bool]:
    return (jobs.c.run_id == run_id) & (jobs.c.job_id == job_id)


def _lock_job(connection: sa.Connection, run_id: str, job_id: str) -> sa.Row[Any]:
    query = sa.select(jobs).where(_is_job(run_id, job_id)).with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        raise _unknown_job(run_id, job_id)
    return row


def _refuse_if_made_meanwhile(
    row: sa.Row[Any], holder: Holder, inputs: Inputs, launched_at: datetime, now: datetime
) -> None:
    """Of two launches at once, one may have waited until it met no holder any more: it would buy everything again."""
    if row.outcome != "done" or row.finished_at is None or row.dagster_run_id == holder.dagster_run_id:
        return
    if not same_inputs(inputs, inputs_from_json(row.attempted) or {}):
        return
    # Not later than now: after the clock was set back, what was finished "later" was finished before.
    if launched_at < row.finished_at <= now:
        raise MadeMeanwhileError(row.run_id, row.job_id, row.dagster_run_id)


def _unknown_job(run_id: str, job_id: str) -> UnknownJobError:
    return UnknownJobError(f"Run {run_id} has no job {job_id}. See: collect status {run_id}")
