"""Dagster in this process, working on one run: decide, execute what is due, look again, until the run is settled."""

from __future__ import annotations

import logging
import signal
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import dagster as dg

from collection_pipeline import resources
from collection_pipeline.automation import collection_job
from collection_pipeline.cli.group import Stopped
from collection_pipeline.cli.instance import open_instance
from collection_pipeline.cli.progress import Display, shown
from collection_pipeline.definitions import GRAPH, definitions
from collection_pipeline.engine.runs.executing import attempts, decide, execute_here
from collection_pipeline.engine.runs.interrupts import noted
from collection_pipeline.engine.runs.launches import (
    FETCH,
    FETCH_MISSING,
    REQUESTED_BY,
    RUN_ID,
    is_out_of_sight,
    live_runs,
)
from collection_pipeline.engine.runs.pools import waits_told
from collection_pipeline.engine.runs.progress import announce
from collection_pipeline.engine.runs.releasing import fail_interrupted
from collection_pipeline.engine.store import HeldError, StoreUnavailableError
from collection_pipeline.engine.words.outcomes import PAID_FOR_KEPT, held_text

if TYPE_CHECKING:
    from collection_pipeline.engine.collection import Collection
    from collection_pipeline.engine.run_ids import RunId
    from collection_pipeline.engine.store import Store
    from collection_pipeline.engine.words.explain import Explanation
    from collection_pipeline.settings import Settings

LOOK_EVERY_S = 0.5


@dataclass
class Session:
    """One run, and what it takes to work on it in this process.

    `interrupts` gives those that came. `command` is what was typed, `goes_on` what goes on once it has started a job.
    """

    collection: Collection
    job: dg.JobDefinition
    instance: dg.DagsterInstance
    run_id: str
    display: Display
    interrupts: Callable[[], Sequence[int]]
    command: str
    goes_on: str
    executed: set[str] = field(default_factory=set)
    """The Dagster runs of this session."""

    def advance(self) -> Explanation:
        """Release holders that are gone, take today's graph, decide, and show the decisions in the state table."""
        self.collection.store.adopt_graph(self.run_id, self.collection.graph)
        explanation = decide(self.collection, self.instance, self.run_id)
        announce(self.collection)
        return explanation

    def execute(self, jobs: Sequence[str], tags: Mapping[str, str]) -> str | None:
        """Execute jobs as one Dagster run of this process. None if it went well, else what Dagster was told first.

        Raises `KeyboardInterrupt`, whatever Dagster made of it.
        """
        dagster_run_id = str(uuid.uuid4())
        self.executed.add(dagster_run_id)
        with waits_told(self.instance, dagster_run_id, self.display.say):
            done = execute_here(self.job, self.instance, self.run_id, jobs, tags=tags, dagster_run_id=dagster_run_id)
        if self.interrupts():
            raise KeyboardInterrupt
        return None if done.success else _first_failure(done)

    def wind_up(self) -> str:
        """End what this session still holds, and say what an interrupt left: what is kept, and how to go on."""
        store = self.collection.store
        fail_interrupted(self.collection, self.run_id, self.executed)
        explanation = self.advance()
        begun = any(job.dagster_run_id in self.executed for job in store.run_view(self.run_id).jobs)
        lines = [f"Stopped. Run {self.run_id} is kept as it is."]
        lines += [
            f"{job_id}: {explanation.account(job_id)}"
            for job_id, decision in explanation.plan.decisions.items()
            if decision.status == "failed"
        ]
        lines += [PAID_FOR_KEPT, f"Type: {self.goes_on}"] if begun else [f"Type: {self.command}"]
        return "\n".join(lines)

    def held(self, job_id: str) -> str | None:
        """Who works on the job, in words. None if nobody does; of a holder that is out of sight, the gate has words."""
        for running in self.collection.store.running(self.run_id):
            if running.job_id == job_id and not is_out_of_sight(self.instance, running.holder):
                return str(HeldError(self.run_id, job_id, running.holder, running.since))
        return None

    def _resume(self, explanation: Explanation) -> bool:
        """Go on with jobs that were interrupted, or whose process ended; whether there were any."""
        stopped = [job_id for job_id in explanation.plan.decisions if explanation.is_stopped(job_id)]
        for tags in (_AS_A_WHOLE, _AS_A_REPAIR):
            jobs = [job_id for job_id in stopped if going_on(explanation, job_id) == tags]
            if jobs:
                self.execute(jobs, tags)
        return bool(stopped)

    def settle(self, requested_by: str, *, resume: bool = False) -> bool:
        """Execute what is due until the run is settled; waits for jobs that others work on.

        With `resume`, first go on with what was stopped: who types the same command again means that. False if an
        execution changed nothing, which is said: another one would not either.
        """
        waits = False
        while True:
            explanation = self.advance()
            if resume and self._resume(explanation):
                explanation = self.advance()
            resume = False
            plan = explanation.plan
            if plan.settled:
                return True
            if plan.requests:
                waits = False
                before = attempts(self.collection, self.run_id)
                problem = self.execute(plan.requests, {REQUESTED_BY: requested_by})
                if attempts(self.collection, self.run_id) == before and self.advance().plan.requests == plan.requests:
                    problem = problem or f"Dagster started none of {', '.join(plan.requests)}."
                    self.display.say(f"Gave up on run {self.run_id}, since executing it changed nothing: {problem}")
                    return False
                continue
            others = [job_id for job_id, decision in plan.decisions.items() if decision.state.in_flight]
            if not others:  # all that was left was to mark jobs as skipped, which deciding has done
                continue
            if not waits:  # what they go on to is told as it starts and ends
                self._say_who_is_out_of_sight()
                told = ", ".join(self._work_of_others(explanation, others))
                self.display.say(f"Waiting for what others do: {told}. Ctrl-C ends the waiting, not their work.")
                waits = True
            time.sleep(LOOK_EVERY_S)

    def _work_of_others(self, explanation: Explanation, jobs: Iterable[str]) -> Iterator[str]:
        """What is running, and which Dagster run is to start what is not."""
        launched = {
            job_id: planned.dagster_run_id[:8]
            for planned in live_runs(self.instance, self.collection.graph).get(self.run_id, ())
            for job_id in planned.job_ids
        }
        for job_id in jobs:
            if explanation.plan.decisions[job_id].status != "running" and job_id in launched:
                yield f"{job_id} about to start in Dagster run {launched[job_id]}"
            else:
                yield f"{job_id} {explanation.condition(job_id)}"

    def _say_who_is_out_of_sight(self) -> None:
        """Waiting for a job never ends if its holder is gone and nothing here can tell: a person has to."""
        for running in self.collection.store.running(self.run_id):
            if is_out_of_sight(self.instance, running.holder):
                held = f"{running.holder} holds {running.job_id}."
                self.display.say(held_text(self.run_id, running.job_id, held))


_AS_A_WHOLE: Mapping[str, str] = {}
_AS_A_REPAIR: Mapping[str, str] = {FETCH: FETCH_MISSING}


def going_on(explanation: Explanation, job_id: str) -> Mapping[str, str]:
    """The tags with which a failed job goes on: one that was to buy only what its newest version lacks still is."""
    return _AS_A_REPAIR if explanation.facts.of(job_id).lacks_answers else _AS_A_WHOLE


@contextmanager
def session(
    settings: Settings, store: Store, run_id: RunId, command: str, goes_on: str | None = None
) -> Iterator[Session]:
    """Open the run if it is new, as partition and as rows, and show its progress until the block ends.

    Raises `Stopped` for an interrupt in the block, with what to type: `command`, or `goes_on` once a job has started;
    `StoreUnavailableError` with the name of the run.
    """
    logging.getLogger("dagster").addHandler(logging.NullHandler())  # what it says of its own plans stays unsaid
    collection = replace(resources.collection(GRAPH, settings), open_store=lambda: store)
    with open_instance(settings.dagster_home) as instance, noted() as interrupts:
        instance.add_dynamic_partitions(RUN_ID, [run_id.text])
        store.open_run(run_id, collection.timezone, collection.graph, collection.now())
        with shown(store, run_id.text) as display:
            display.say(f"Run {run_id}; source: {collection.source_label}")
            if run_id.is_ahead(collection.now(), store.run_view(run_id.text).timezone):
                display.say("The day of this run has not begun. On that day it will be found collected already.")
            collection = replace(collection, report_progress=display.calls)
            job = definitions(collection).resolve_job_def(collection_job.name)
            work = Session(collection, job, instance, run_id.text, display, interrupts, command, goes_on or command)
            try:
                yield work
            except KeyboardInterrupt:
                raise Stopped(next(iter(interrupts()), signal.SIGINT), work.wind_up()) from None
            except StoreUnavailableError as error:
                raise StoreUnavailableError(f"Run {run_id} stopped. {error}") from error


def _first_failure(done: dg.ExecuteInProcessResult) -> str:
    """What the first failed step says: the words of a `dg.Failure`, else the error at the bottom of it."""
    for event in done.all_events:
        if event.is_step_failure:
            data = event.step_failure_data
            if data.user_failure_data is not None and data.user_failure_data.description:
                return str(data.user_failure_data.description)
            error = data.error
            while error is not None and error.cause is not None:
                error = error.cause
            if error is not None:
                return str(error.message).strip()
    return "Dagster's run failed before it started a job."
