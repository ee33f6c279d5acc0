"""What the processes do that meet over one database. A module of its own, so that they need not import the tests."""

from __future__ import annotations

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


def open_store(url: str, start: Any) -> None:
    """Wait for the others, then open the store, which nobody has made yet."""
    start.wait()
    Store.open(url).close()
