"""Going on, in the process of a Dagster run, with what its steps made due."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import dagster as dg

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.runs.executing import attempts, execute_here
from collection_pipeline.engine.runs.launches import (
    CARRYING_ON,
    GOES_ON_FROM,
    PARTITION,
    REQUESTED_BY,
    STEPS_OVER,
    is_over,
    live_runs,
)
from collection_pipeline.engine.runs.progress import advance, take_graph
from collection_pipeline.engine.runs.releasing import fail_interrupted, release_abandoned
from collection_pipeline.engine.store import UnknownRunError


@dataclass(frozen=True, kw_only=True)
class CarryingOn:
    """What a Dagster run made due, executed in its process once its steps are through.

    `job` gives the job that has all assets of the graph, `log` is the Dagster run's, and `interrupts` gives those that
    came since it started: of some, Dagster makes no more than a failed step, and of others nothing.
    """

    collection: Collection
    job: Callable[[], dg.JobDefinition]
    instance: dg.DagsterInstance
    run: dg.DagsterRun
    log: logging.Logger
    interrupts: Callable[[], Sequence[int]]

    def carry_on(self) -> None:
        """Execute what is due in the collection run and nobody else will start, until nothing is.

        Raises `KeyboardInterrupt` for an interrupt. Whatever else goes wrong does not change how the Dagster run ends,
        and is left to the sensor.
        """
        run_id = self.run.tags.get(PARTITION)
        try:
            if not self.interrupts() and run_id is not None and self._has_changed(run_id):
                self._execute_what_is_due(run_id)
        except UnknownRunError:  # a step was refused before the run was opened, or the run was pruned
            pass
        except Exception as error:  # noqa: BLE001
            self.log.warning("What follows in run %s is left to the sensor: %s", run_id, error)
        if self.interrupts():
            raise KeyboardInterrupt

    def _has_changed(self, run_id: str) -> bool:
        """Whether this Dagster run attempted a job, so that something may be due by it.

        A launcher that looks after its workers would take what follows for a Dagster run whose worker is gone.
        """
        if self.instance.run_launcher.supports_check_run_worker_health:
            return False
        view = self.collection.store.run_view(run_id)
        return view.settled_at is None and any(job.dagster_run_id == self.run.run_id for job in view.jobs)

    def _execute_what_is_due(self, run_id: str) -> None:
        take_graph(self.collection, run_id)
        self.instance.add_run_tags(self.run.run_id, {STEPS_OVER: "yes"})  # nothing of it is in flight any more
        while jobs := self._due(run_id):
            following = str(uuid.uuid4())
            self.log.info("Run %s goes on with %s, in Dagster run %s.", run_id, ", ".join(jobs), following)
            before = attempts(self.collection, run_id)
            tags = {REQUESTED_BY: CARRYING_ON, GOES_ON_FROM: self.run.run_id}
            execute_here(self.job(), self.instance, run_id, jobs, tags=tags, dagster_run_id=following)
            if self.interrupts():
                fail_interrupted(self.collection, run_id, {following})
                return
            if self._was_ended(following) or attempts(self.collection, run_id) == before:
                return

    def _due(self, run_id: str) -> Sequence[str]:
        """What may start now and is not in flight."""
        release_abandoned(self.collection, run_id, partial(is_over, self.instance))
        live = live_runs(self.instance, self.collection.graph)
        return advance(self.collection, self.instance, run_id, live.get(run_id, ())).plan.requests

    def _was_ended(self, following: str) -> bool:
        """Whether somebody ended this Dagster run, or the one that followed it, in Dagster alone."""
        own, last = self.instance.get_run_by_id(self.run.run_id), self.instance.get_run_by_id(following)
        return own is None or own.is_finished or last is None or last.status is dg.DagsterRunStatus.CANCELED
