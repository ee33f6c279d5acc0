"""When a Dagster run of this process only waits, and saying so where it waits for a place in a concurrency pool."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import dagster as dg

LOOK_EVERY_S = 3.0


@contextmanager
def waits_told(instance: dg.DagsterInstance, dagster_run_id: str, say: Callable[[str], None]) -> Iterator[None]:
    """Tell once for each step and pool that it waits, and which Dagster runs have the places, until the block ends.

    Whatever goes wrong in looking costs nothing but the message.
    """
    over = threading.Event()
    told: set[str] = set()

    def keep_looking() -> None:
        while not over.wait(LOOK_EVERY_S):
            with suppress(Exception):
                for line in _waits(instance, dagster_run_id):
                    if line not in told:
                        told.add(line)
                        say(line)

    thread = threading.Thread(target=keep_looking, name="pools", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def is_waiting(instance: dg.DagsterInstance, dagster_run_id: str) -> bool:
    """Whether Dagster only waits with the run, for a place in a pool or to try a step again; no, if that is not known.

    Dagster executes one step of it at a time, and others while one waits.
    """
    with suppress(Exception):
        events = instance.all_logs(dagster_run_id, of_type={*_IN_STEP, *_OUT_OF_STEP})
        last = {event.step_key: event.get_dagster_event().event_type for event in events}.values()
        if not any(event in _IN_STEP for event in last):
            return dg.DagsterEventType.STEP_UP_FOR_RETRY in last or any(_waits(instance, dagster_run_id))
    return False


_IN_STEP = (dg.DagsterEventType.STEP_START, dg.DagsterEventType.STEP_RESTARTED)
_OUT_OF_STEP = (
    dg.DagsterEventType.STEP_UP_FOR_RETRY,
    dg.DagsterEventType.STEP_SUCCESS,
    dg.DagsterEventType.STEP_FAILURE,
    dg.DagsterEventType.STEP_SKIPPED,
)


def _waits(instance: dg.DagsterInstance, dagster_run_id: str) -> Iterator[str]:
    # Who waits and who has places is no documented API of Dagster's; cli/test_instance.py watches it.
    for pool in sorted(instance.event_log_storage.get_concurrency_keys()):
        info = instance.event_log_storage.get_concurrency_info(pool)
        holders = ", ".join(sorted({slot.run_id[:8] for slot in info.claimed_slots if slot.run_id != dagster_run_id}))
        for step in info.pending_steps:
            if step.run_id == dagster_run_id and step.assigned_timestamp is None and holders:
                yield f"{step.step_key} waits for a place in the pool {pool}, which Dagster run {holders} has."
