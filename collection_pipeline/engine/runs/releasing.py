"""Jobs that a crash left running, and who notices: whoever looks at the run next, with Dagster or without."""

from __future__ import annotations

from collections.abc import Callable, Container

from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.holders import Holder, process_is_gone
from collection_pipeline.engine.words.outcomes import INTERRUPTED


def release_abandoned(
    collection: Collection, run_id: str | None = None, is_over: Callable[[Holder], bool] = process_is_gone
) -> None:
    """Fail every running job (of one run, or of all) whose holder can no longer finish it, as `is_over` says.

    Without Dagster, that is one whose process on this host has ended.
    """
    for running in collection.store.running(run_id):
        if is_over(running.holder):
            reason = f"{running.holder} ended without finishing it"
            collection.store.fail_abandoned(running.run_id, running.job_id, running.holder, reason, collection.now())


def fail_interrupted(collection: Collection, run_id: str, dagster_run_ids: Container[str]) -> None:
    """Fail the jobs that these Dagster runs of an interrupted process still hold: they were between two tries."""
    for running in collection.store.running(run_id):
        if running.holder.dagster_run_id in dagster_run_ids:
            now = collection.now()
            collection.store.fail_abandoned(
                running.run_id, running.job_id, running.holder, INTERRUPTED, now, kind=INTERRUPTED
            )
