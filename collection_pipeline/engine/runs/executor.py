"""The executor that the template ships: Dagster's in-process one, which then goes on with what is due.

Dagster gives up what stands behind a failed step, though an edge may let it run on something older; and of a job that
is launched alone, it knows no followers. Were they left to the sensor, it would have to look every few seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import dagster as dg

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.runs.interrupts import noted, taken_while
from collection_pipeline.engine.runs.launches import CARRYING_ON, name_worker
from collection_pipeline.engine.runs.pools import is_waiting


def carrying_on(collection: Collection, job: Callable[[], dg.JobDefinition]) -> dg.ExecutorDefinition:
    """Dagster's in-process executor, which then carries on. `job` gives the job that has all assets of the graph.

    What is executed by `execute_in_process`, as `collect` does, has an executor of Dagster's and does not carry on.
    """
    in_process = dg.in_process_executor
    create = in_process.executor_creation_fn
    assert create is not None
    return dg.ExecutorDefinition(
        CARRYING_ON,
        config_schema=in_process.config_schema.as_field(),
        executor_creation_fn=lambda context: _CarryOn(create(context), collection, job),
        description="Executes all steps in one process, and then whatever of their run is due.",
    )


class _CarryOn(dg.Executor):
    def __init__(self, inner: dg.Executor, collection: Collection, job: Callable[[], dg.JobDefinition]) -> None:
        self._inner = inner
        self._collection = collection
        self._job = job

    # `Any`: Dagster does not export the types.

    @property
    def retries(self) -> Any:
        return self._inner.retries

    @property
    def step_dependency_config(self) -> Any:
        return self._inner.step_dependency_config

    def execute(self, plan_context: Any, execution_plan: Any) -> Iterator[dg.DagsterEvent]:
        # SQLAlchemy: only when something is executed.
        from collection_pipeline.engine.runs.carrying_on import CarryingOn

        instance, run = plan_context.instance, plan_context.dagster_run
        name_worker(instance, run, CARRYING_ON)  # before any step: it may wait for its place for hours
        with noted() as interrupts:
            then = CarryingOn(
                collection=self._collection,
                job=self._job,
                instance=instance,
                run=run,
                log=plan_context.log,
                interrupts=interrupts,
            )
            try:
                with taken_while(partial(is_waiting, instance, run.run_id)):
                    yield from self._inner.execute(plan_context, execution_plan)
            except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError, GeneratorExit):
                then.give_up()
                raise
            then.carry_on()
