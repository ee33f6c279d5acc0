"""Going on, in the process of a Dagster run, with what its steps made due."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import dagster as dg

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.runs.executing import attempts, decide, execute_here
from collection_pipeline.engine.runs.interrupts import interrupted_when
from collection_pipeline.engine.runs.launches import (
    CARRYING_ON,
    GOES_ON_FROM,
    PARTITION,
    REQUESTED_BY,
    STEPS_OVER,
)
from collection_pipeline.engine.runs.progress import take_graph
from collection_pipeline.engine.runs.releasing import fail_interrupted
from collection_pipeline.engine.store import StoreError, UnknownRunError


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

    def give_up(self) -> None:
        """Note that the steps were interrupted, also of a job that was between two tries; else the sensor does."""
        run_id = self.run.tags.get(PARTITION)
        if run_id is not None:
            with suppress(StoreError):
                fail_interrupted(self.collection, run_id, {self.run.run_id})

    def carry_on(self) -> None:
        """Execute what is due in the collection run and nobody else will start, until nothing is.

        Raises `KeyboardInterrupt` for an interrupt. Whatever else goes wrong does not change how the Dagster run ends,
        and is left to the sensor.
        """
        run_id, asked = self.run.tags.get(PARTITION), False
        # A launcher that looks after its workers would take what follows for a Dagster run whose worker is gone.
        if (
            run_id is not None
            and not self.interrupts()
            and not self.instance.run_launcher.supports_check_run_worker_health
        ):
            try:
                asked = self._execute_what_is_due(run_id)
            except UnknownRunError:  # a step was refused before the run was opened, or the run was pruned
                pass
            except Exception as error:  # noqa: BLE001
                self.log.warning("What follows in run %s is left to the sensor: %s", run_id, error)
        if len(self.interrupts()) > int(asked):  # its own was meant for what it went on with
            raise KeyboardInterrupt

    def _execute_what_is_due(self, run_id: str) -> bool:
        """Whether it interrupted itself, since somebody ended a Dagster run that it went on with.

        In a run of which no job was ever attempted nothing is begun: all that was launched of it was refused.
        """
        view = self.collection.store.run_view(run_id)
        if view.settled_at is not None or not any(job.attempts for job in view.jobs):
            return False
        take_graph(self.collection, run_id)
        self.instance.add_run_tags(self.run.run_id, {STEPS_OVER: "yes"})  # nothing of it is in flight any more
        while jobs := decide(self.collection, self.instance, run_id).plan.requests:
            following = str(uuid.uuid4())
            self.log.info("Run %s goes on with %s, in Dagster run %s.", run_id, ", ".join(jobs), following)
            before = attempts(self.collection, run_id)
            tags = {REQUESTED_BY: CARRYING_ON, GOES_ON_FROM: self.run.run_id}
            with interrupted_when(partial(self._is_to_end, following)) as asked, suppress(KeyboardInterrupt):
                execute_here(self.job(), self.instance, run_id, jobs, tags=tags, dagster_run_id=following)
            if self.interrupts():
                fail_interrupted(self.collection, run_id, {following})
                return asked()
            if self._is_to_end(self.run.run_id) or attempts(self.collection, run_id) == before:
                return False
        return False

    def _is_to_end(self, dagster_run_id: str) -> bool:
        """Whether somebody asked Dagster to end this run, or marked it as ended."""
        run = self.instance.get_run_by_id(dagster_run_id)
        return run is not None and run.status in (dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED)
