"""What the processes do that meet over one database. A module of its own, so that they need not import the tests."""

from __future__ import annotations

import multiprocessing
from typing import Any

from collection_pipeline.engine.store import HeldError, Store
from collection_pipeline_tests.store.world import World, holder, places


def claim_and_publish(url: str, number: int, job: str, start: Any, results: Any) -> None:
    """Wait for the others, then take `run_id/job_id` and publish; results in the version, or "held"."""
    run_id, job_id = job.split("/")
    with Store.open(url) as store:
        world = World(store)
        start.wait()
        try:
            attempt = world.claim(run_id, job_id, holder(f"dagster-{number}", number), inputs={})
        except HeldError:
            results.put("held")
            return
        results.put(world.publish(attempt, [places(str(number))]).artifact.version)


def open_at_once(url: str) -> list[int | None]:
    """Eight processes open one database, all at once; their exit codes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    start = context.Barrier(8)
    opening = [context.Process(target=_open, args=(url, start)) for _ in range(8)]
    for process in opening:
        process.start()
    for process in opening:
        process.join(120)
    return [process.exitcode for process in opening]


def _open(url: str, start: Any) -> None:
    start.wait()
    Store.open(url).close()
