"""Executing jobs of a run as a Dagster run of this process: what `collect` does, and a worker that carries on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.runs.launches import PROCESS, process_tag

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
    """Execute jobs of a run as a Dagster run of this process, which a tag names. What fails is in the result."""
    return job.execute_in_process(
        run_id=dagster_run_id,
        run_config=_QUIET,
        instance=instance,
        partition_key=run_id,
        asset_selection=[dg.AssetKey(job_id) for job_id in jobs],
        tags={**tags, PROCESS: process_tag()},
        raise_on_error=False,
    )


def attempts(collection: Collection, run_id: str) -> dict[str, tuple[int, str]]:
    """By job, how many attempts there were and how the last one stands."""
    return {job.job_id: (job.attempts, job.outcome) for job in collection.store.run_view(run_id).jobs}
