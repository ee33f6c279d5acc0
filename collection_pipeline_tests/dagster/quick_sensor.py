"""The sensor of the template, but as often as Dagster allows: tests with real processes do not wait for it."""

# No `from __future__ import annotations`: Dagster reads the types of the arguments from the functions themselves.
from collections.abc import Iterator

import dagster as dg

from collection_pipeline.automation import propagation_sensor
from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.jobs.asset import GROUP
from collection_pipeline.engine.runs.propagation import propagate


@dg.sensor(
    name=propagation_sensor.name,
    target=dg.AssetSelection.groups(GROUP),
    minimum_interval_seconds=1,
    default_status=propagation_sensor.default_status,
)
def quick_sensor(
    context: dg.SensorEvaluationContext, collection: dg.ResourceParam[Collection]
) -> Iterator[dg.RunRequest | dg.SkipReason]:
    yield from propagate(context.instance, collection)
