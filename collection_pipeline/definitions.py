"""The index that Dagster loads: assets, job, schedule, sensor, resource. Loading it reads the settings and checks the
graph that the assets declare; it opens no database, and asks no source."""

from __future__ import annotations

import dagster as dg

from collection_pipeline import resources
from collection_pipeline.assets import ASSETS
from collection_pipeline.automation import collection_job, daily_schedule, propagation_sensor
from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.jobs.asset import COLLECTION_RESOURCE, graph_of
from collection_pipeline.engine.runs.executor import carrying_on
from collection_pipeline.settings import settings

GRAPH = graph_of(ASSETS)


def definitions(collection: Collection) -> dg.Definitions:
    """All that Dagster knows of the project, working on `collection`."""
    made: dg.Definitions = dg.Definitions(
        assets=ASSETS,
        jobs=[collection_job],
        schedules=[daily_schedule],
        sensors=[propagation_sensor],
        resources={COLLECTION_RESOURCE: collection},
        # In process: 0.06 s from step to step instead of 1.9 s. Steps of one run do not run side by side, and a crash
        # takes the whole Dagster run; the calls within a job are concurrent all the same, and the sensor resumes what
        # is left. What the steps make due beyond their own Dagster run, the same process goes on with.
        executor=carrying_on(collection, lambda: made.resolve_job_def(collection_job.name)),
    )
    return made


defs = definitions(resources.collection(GRAPH, settings()))
