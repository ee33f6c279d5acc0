"""What starts runs: the job, the schedule that opens the day's run, and the sensor that acts on the plan."""

# No `from __future__ import annotations`: Dagster reads the types of the arguments from the functions themselves.
from collections.abc import Iterator

import dagster as dg

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.jobs.asset import GROUP
from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.runs.launches import REQUESTED_BY, RUN_ID
from collection_pipeline.settings import settings

collection_job = dg.define_asset_job(
    "collection_job", dg.AssetSelection.groups(GROUP), description="The whole chain of one run."
)


@dg.schedule(
    job=collection_job,
    cron_schedule="0 6 * * *",
    execution_timezone=settings().timezone.key,
    default_status=dg.DefaultScheduleStatus.STOPPED,
)
def daily_schedule(context: dg.ScheduleEvaluationContext, collection: dg.ResourceParam[Collection]) -> dg.RunRequest:
    """Opens the day's run at 06:00 and requests its whole chain as one Dagster run. Ships stopped."""
    run_id = RunId.of_day(context.scheduled_execution_time, collection.timezone)
    # Partition and run request are created together: a run_id never exists without its run.
    context.instance.add_dynamic_partitions(RUN_ID, [run_id.text])
    collection.store.open_run(run_id, collection.timezone, collection.graph, collection.now())
    return dg.RunRequest(run_key=run_id.text, partition_key=run_id.text, tags={REQUESTED_BY: daily_schedule.name})


# What the steps of a Dagster run make due, its worker goes on with; the sensor sees to the rest. A tick costs 0.13 s of
# processor time, nearly all of it Dagster's: every 90 s that is a twenty-fifth of what an idle `dagster dev` takes.
@dg.sensor(
    target=dg.AssetSelection.groups(GROUP),
    minimum_interval_seconds=90,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def propagation_sensor(
    context: dg.SensorEvaluationContext, collection: dg.ResourceParam[Collection]
) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """Acts in open runs where no worker can: a deadline that passed, a worker that was killed, a run that never
    started, an earlier run that has something to fall back on now. Costs nothing when no run is open."""
    from collection_pipeline.engine.runs.propagation import propagate  # SQLAlchemy: only when a tick runs

    yield from propagate(context.instance, collection)
