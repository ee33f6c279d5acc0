"""100,000 details through the asset itself: what the whole process holds at its peak."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext

import dagster as dg

from benchmarks.measuring import ROOT, Figure, peak_mb, process_cost, python, workplace
from benchmarks.server import serving
from benchmarks.workload import RUN
from collection_pipeline.assets import ASSETS
from collection_pipeline.datasets import DETAIL_PAGES
from collection_pipeline.definitions import GRAPH
from collection_pipeline.engine.jobs.asset import COLLECTION_RESOURCE
from collection_pipeline.engine.runs.launches import RUN_ID
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
    """Peak memory of a process that loads Dagster and materializes `detail_pages`, one for each size."""
    for places in (100, 2_000, 20_000) if quick else (100, 10_000, 100_000):
        command = python("-m", __name__, str(places))
        done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        yield Figure(f"peak of {places:,} details", float(done.stdout), "MB", at_most=300)


def _materialize(places: int) -> None:
    with workplace() as environ, serving(0.001) as server, dg.DagsterInstance.ephemeral() as instance:
        os.makedirs(environ["COLLECTION_DATA"])  # noqa: PTH103
        source = SerpBaseSource(server.base_url, "benchmark")
        made = dataclasses.replace(
            collection(GRAPH, Settings.load(environ)), open_source=lambda _moment: nullcontext(source)
        )
        # In another process: what the search took is not what the details take.
        process_cost(python("-c", _SEARCHED, made.store.url, str(places)), environ)
        instance.add_dynamic_partitions(RUN_ID, [str(RUN)])
        dg.materialize(
            ASSETS,
            selection=[DETAIL_PAGES.name],
            partition_key=str(RUN),
            instance=instance,
            resources={COLLECTION_RESOURCE: made},
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
        made.store.close()


if __name__ == "__main__":
    _materialize(int(sys.argv[1]))
    print(peak_mb())
