"""Ctrl-C while Dagster only notes it: a step that waits for its place in a pool may wait for hours."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from collection_pipeline.cli.instance import open_instance
from collection_pipeline.cli.interrupts import taken_while
from collection_pipeline_tests.cli.desk import Desk


@pytest.fixture
def noted() -> Iterator[threading.Event]:
    """As Dagster handles interrupts between two steps."""
    came = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: came.set())
    yield came
    signal.signal(signal.SIGINT, before)


def _interrupt_and_wait() -> None:
    signal.raise_signal(signal.SIGINT)
    threading.Event().wait(30)


def test_an_interrupt_while_a_step_waits_is_taken_at_once(noted: threading.Event) -> None:
    with pytest.raises(KeyboardInterrupt), taken_while(lambda: True):
        _interrupt_and_wait()
    assert noted.is_set()


def test_an_interrupt_before_the_step_begins_to_wait_is_taken_when_it_does(noted: threading.Event) -> None:
    looks = iter([False, True])
    with pytest.raises(KeyboardInterrupt), taken_while(lambda: next(looks)):
        _interrupt_and_wait()


def test_an_interrupt_while_nothing_waits_is_left_to_who_handles_it_and_known_afterwards(
    noted: threading.Event,
) -> None:
    with taken_while(lambda: False) as came:
        assert not came
        signal.raise_signal(signal.SIGINT)
    assert came == [signal.SIGINT]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_collect_stops_waiting_for_its_place_and_says_how_to_go_on(desk: Desk, how: signal.Signals) -> None:
    with open_instance(desk.folder / "data" / "dagster") as instance:
        instance.event_log_storage.set_concurrency_slots("serpbase", 1)
        instance.event_log_storage.claim_concurrency_slot("serpbase", "11111111-of-another", "detail_pages")
        with desk.start("run", "2026-11-29") as running:
            assert running.stderr is not None
            assert any("waits for a place in the pool serpbase" in line for line in running.stderr)
            running.send_signal(how)
            out, err = running.communicate(timeout=120)
        (left,) = instance.event_log_storage.get_concurrency_info("serpbase").pending_steps
        assert left.run_id == "11111111-of-another"
    assert (running.returncode, out) == (128 + how, "")
    first, *_, last = err.splitlines()
    assert first == "Stopped. Run 2026-11-29 is kept as it is."
    assert last == "Type: collect run 2026-11-29"
