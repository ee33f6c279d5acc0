"""Runs made by hand in the store, so that commands which only read need no Dagster to be tested."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import psutil

from collection_pipeline.engine.holders import Holder, this_process
from collection_pipeline.engine.jobs.gate import gate
from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.store import Attempt, Store
from collection_pipeline_tests.engine.builders import collection_graph

RUN_ID = "2026-11-29"
OPENED = datetime(2026, 11, 29, 6, 0, tzinfo=UTC)
GRAPH = Graph.build(replace(job, deadline=None) for job in collection_graph())
"""Nothing in it is late, whenever the tests run."""

ALIVE = Holder("dagster-run-of-another", *this_process())


def holder_in(pid: int) -> Holder:
    """A Dagster run in that process of this host."""
    process = psutil.Process(pid)
    return replace(ALIVE, pid=pid, process_started_at=process.create_time() - psutil.boot_time())


def open_run(store: Store, run_id: str = RUN_ID) -> None:
    store.open_run(RunId.parse(run_id), ZoneInfo("UTC"), GRAPH, OPENED)


def start(store: Store, job_id: str, run_id: str = RUN_ID, holder: Holder = ALIVE) -> Attempt:
    decide = gate(GRAPH, job_id, automatic=False, now=OPENED)
    return store.claim(
        run_id, job_id, holder, GRAPH, source="a", decide=decide, is_over=lambda _: False, now=lambda: OPENED
    )


def fail(store: Store, job_id: str, reason: str, run_id: str = RUN_ID) -> None:
    store.fail(start(store, job_id, run_id), reason, "transient", OPENED)
