"""When a Dagster run of this process only waits, and saying so where it waits for a place in a concurrency pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import dagster as dg

from collection_pipeline.engine.runs.looking import looking

LOOK_EVERY_S = 3.0


@contextmanager
def waits_told(instance: dg.DagsterInstance, dagster_run_id: str, say: Callable[[str], None]) -> Iterator[None]:
    """Tell once for each step and pool that it waits, and which Dagster runs have the places, until the block ends."""
    told: set[str] = set()

    def look() -> bool:
        for step_key, pool, others in _waits(instance, dagster_run_id):
            holders = ", ".join(sorted(each[:8] for each in others))
            line = f"{step_key} waits for a place in the pool {pool}, which Dagster run {holders} has."
            if others and line not in told:
                told.add(line)
                say(line)
        return False

    with looking(look, every_s=LOOK_EVERY_S, name="pools"):
        yield


def is_waiting(instance: dg.DagsterInstance, dagster_run_id: str) -> bool:
    """Whether Dagster only waits with the run, for a place in a pool or to try a step again.

    Dagster executes one step of it at a time, and others while one waits.
    """
    events = instance.all_logs(dagster_run_id, of_type={*_IN_STEP, *_OUT_OF_STEP})
    last = {event.step_key: event.get_dagster_event().event_type for event in events}.values()
    if any(event in _IN_STEP for event in last):
        return False
    return dg.DagsterEventType.STEP_UP_FOR_RETRY in last or any(_waits(instance, dagster_run_id))


_IN_STEP = (dg.DagsterEventType.STEP_START, dg.DagsterEventType.STEP_RESTARTED)
_OUT_OF_STEP = (
    dg.DagsterEventType.STEP_UP_FOR_RETRY,
    dg.DagsterEventType.STEP_SUCCESS,
    dg.DagsterEventType.STEP_FAILURE,
    dg.DagsterEventType.STEP_SKIPPED,
)


def _waits(instance: dg.DagsterInstance, dagster_run_id: str) -> Iterator[tuple[str, str, set[str]]]:
    """Each step of the Dagster run that waits for a place, its pool, and the others that have the places."""
    # Who waits and who has places is no documented API of Dagster's; cli/test_instance.py watches it.
    for pool in sorted(instance.event_log_storage.get_concurrency_keys()):
        info = instance.event_log_storage.get_concurrency_info(pool)
        others = (info.active_run_ids | info.assigned_run_ids) - {dagster_run_id}
        for step in info.pending_steps:
            if step.run_id == dagster_run_id and step.assigned_timestamp is None:
                yield step.step_key, pool, others
