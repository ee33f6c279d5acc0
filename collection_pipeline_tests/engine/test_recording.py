"""Exchanges on their way to the store: none is dropped and none stored twice, whatever breaks off or is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from threading import Event, Timer

import pytest

from collection_pipeline.engine.jobs import recording
from collection_pipeline.engine.jobs.recording import WRITE_BATCH, Recorder
from collection_pipeline.engine.store import StoreUnavailableError


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "PAUSE_S", 0.001)


class Database:
    """Keeps what is recorded; does as it is told at each batch."""

    def __init__(self, *turns: Callable[[], None]) -> None:
        self.kept: list[int] = []
        self.batches: list[int] = []
        self._turns = iter(turns)

    def record(self, batch: Sequence[int]) -> None:
        next(self._turns, lambda: None)()
        self.kept += batch
        self.batches.append(len(batch))


def wait(event: Event) -> None:
    assert event.wait(60)


def away() -> None:
    raise StoreUnavailableError("away")


async def fetch(recorder: Recorder[int], count: int) -> None:
    """Put so many exchanges, then close."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(recorder.run())
        for number in range(count):
            await recorder.put(number)
        await recorder.close()


def test_everything_is_stored_in_order_and_in_batches() -> None:
    database = Database()
    asyncio.run(fetch(Recorder(database.record), 10 * WRITE_BATCH))
    assert database.kept == list(range(10 * WRITE_BATCH))
    assert max(database.batches) <= WRITE_BATCH


def test_a_batch_that_is_full_and_the_last_one_wait_for_no_company(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "GATHER_S", 3600.0)
    database = Database()
    asyncio.run(asyncio.wait_for(fetch(Recorder(database.record), 4 * WRITE_BATCH + 3), 60))
    assert database.batches == [*[WRITE_BATCH] * 4, 3]


def test_nothing_to_store_is_no_batch() -> None:
    database = Database()
    asyncio.run(fetch(Recorder(database.record), 0))
    assert database.batches == []


def test_a_database_that_comes_back_gets_everything_once() -> None:
    database = Database(away, away, away)
    asyncio.run(fetch(Recorder(database.record), 100))
    assert database.kept == list(range(100))


def test_whoever_fetches_waits_for_a_database_that_is_away() -> None:
    back = Event()
    database = Database(lambda: wait(back))
    recorder = Recorder(database.record)
    taken: list[int] = []

    async def story() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(recorder.run())
            fetching = tasks.create_task(put_all())
            for _ in range(10_000):
                await asyncio.sleep(0)
            assert not fetching.done()
            assert len(taken) <= 2 * WRITE_BATCH
            back.set()

    async def put_all() -> None:
        for number in range(1_000):
            await recorder.put(number)
            taken.append(number)
        await recorder.close()

    asyncio.run(story())
    assert database.kept == list(range(1_000))


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "PATIENCE_S", 0.0)
    database = Database(*[away] * 1_000)
    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(fetch(Recorder(database.record), 10))
    assert raised.group_contains(StoreUnavailableError, match="away")
    assert database.kept == []


def test_what_arrived_before_a_fetch_broke_off_is_stored_once() -> None:
    saving, go_on = Event(), Event()

    def slow() -> None:
        saving.set()
        wait(go_on)

    database = Database(slow)
    recorder = Recorder(database.record)

    async def story() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(recorder.run())
            await recorder.put(0)
            await asyncio.to_thread(wait, saving)
            for number in range(1, 5):  # arrive while the first is being stored
                await recorder.put(number)
            Timer(0.01, go_on.set).start()
            raise ConnectionError("the fetch broke off")

    with pytest.raises(ExceptionGroup):
        asyncio.run(story())
    assert database.kept == [0, 1, 2, 3, 4]


def test_so_is_what_arrived_after_others_were_stored_and_waits_for_company(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = Event()
    database = Database(stored.set)
    recorder = Recorder(database.record)

    async def story() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(recorder.run())
            await recorder.put(0)
            await asyncio.to_thread(wait, stored)
            monkeypatch.setattr(recording, "GATHER_S", 60.0)
            await recorder.put(1)
            for _ in range(10_000):  # it is taken, and waits for company
                await asyncio.sleep(0)
            raise ConnectionError("the fetch broke off")

    with pytest.raises(ExceptionGroup):
        asyncio.run(story())
    assert database.kept == [0, 1]
