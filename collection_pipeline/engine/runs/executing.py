"""Executing jobs of a run as a Dagster run of this process: what `collect` does, and a worker that carries on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import dagster as dg

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.runs.interrupts import taken_while
from collection_pipeline.engine.runs.launches import PROCESS, is_over, live_runs, process_tag
from collection_pipeline.engine.runs.pools import is_waiting
from collection_pipeline.engine.runs.progress import advance
from collection_pipeline.engine.runs.releasing import release_abandoned
from collection_pipeline.engine.words.explain import Explanation

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""Dagster's events go to its event log, and so to the UI; the console belongs to whoever runs this process."""


def execute_here(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    run_id: str,
    jobs: Sequence[str],
    *,
    tags: Mapping[str, str],
    dagster_run_id: str,
) -> dg.ExecuteInProcessResult:
    """Execute jobs of a run as a Dagster run of this process, which a tag names. What fails is in the result.

    Raises `KeyboardInterrupt` for an interrupt that is noted while Dagster only waits, and of the others for those that
    Dagster raises: of many a step makes a failure, or Dagster nothing.
    """
    try:
        with taken_while(partial(is_waiting, instance, dagster_run_id)):
            return job.execute_in_process(
                run_id=dagster_run_id,
                run_config=_QUIET,
                instance=instance,
                partition_key=run_id,
                asset_selection=[dg.AssetKey(job_id) for job_id in jobs],
                tags={**tags, PROCESS: process_tag()},
                raise_on_error=False,
            )
    except dg.DagsterExecutionInterruptedError:
        raise KeyboardInterrupt from None


def decide(collection: Collection, instance: dg.DagsterInstance, run_id: str) -> Explanation:
    """Release holders that are gone, decide the run by what is in flight, and show it in the state table."""
    release_abandoned(collection, run_id, partial(is_over, instance))
    return advance(collection, instance, run_id, live_runs(instance, collection.graph).get(run_id, ()))


def attempts(collection: Collection, run_id: str) -> dict[str, tuple[int, str]]:
    """By job, how many attempts there were and how the last one stands."""
    return {job.job_id: (job.attempts, job.outcome) for job in collection.store.run_view(run_id).jobs}
