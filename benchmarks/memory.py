"""100,000 details through the asset itself: what the whole process holds at its peak."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from contextlib import nullcontext

import dagster as dg

from benchmarks.measuring import Figure, peak_mb, process_cost, python, seconds, workplace
from benchmarks.server import serving
from benchmarks.workload import RUN
from collection_pipeline.assets import ASSETS
from collection_pipeline.datasets import DETAIL_PAGES
from collection_pipeline.definitions import GRAPH
from collection_pipeline.engine.jobs.asset import COLLECTION_RESOURCE, RUN_ID
from collection_pipeline.resources import collection
from collection_pipeline.settings import Settings
from collection_pipeline.sources.serpbase import SerpBaseSource

_SEARCHED = """
import sys
from benchmarks.workload import searched
from collection_pipeline.engine.store import Store

with Store.open(sys.argv[1]) as store:
    searched(store, int(sys.argv[2]))
"""


def measure(*, quick: bool) -> Iterator[Figure]:
    """Peak memory of this process, which loads Dagster and materializes `detail_pages`."""
    sizes = (2_000, 20_000) if quick else (10_000, 100_000)
    for places in sizes:
        taken_s = _materialize(places)
        # The highest yet: the small size comes first.
        yield Figure(f"peak after {places:,} details", peak_mb(), "MB", at_most=300, note=f"{taken_s:.0f} s")


def _materialize(places: int) -> float:
    with workplace() as environ, serving(0.001) as base_url, dg.DagsterInstance.ephemeral() as instance:
        os.makedirs(environ["COLLECTION_DATA"])  # noqa: PTH103
        source = SerpBaseSource(base_url, "benchmark", label="benchmark")
        made = dataclasses.replace(
            collection(GRAPH, Settings.load(environ)), open_source=lambda _moment: nullcontext(source)
        )
        # In another process: what the search took is not what the details take.
        process_cost(python("-c", _SEARCHED, made.store.url, str(places)), environ)
        instance.add_dynamic_partitions(RUN_ID, [str(RUN)])

        def run() -> None:
            dg.materialize(
                ASSETS,
                selection=[DETAIL_PAGES.name],
                partition_key=str(RUN),
                instance=instance,
                resources={COLLECTION_RESOURCE: made},
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            )

        taken_s = seconds(run)
        made.store.close()
        return taken_s
