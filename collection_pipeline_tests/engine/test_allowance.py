"""Credits are set aside before requests are sent: few times without a budget, never more than it with one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from collection_pipeline.engine.jobs.allowance import UNLIMITED_BLOCK, Allowance
from collection_pipeline.engine.store import Attempt, Store, StoreUnavailableError
from collection_pipeline.sources.contract import ApiRequest, Exchange
from collection_pipeline_tests.store.world import World

RUN = "2026-11-29"
REQUEST = ApiRequest("maps_detail", {"feature_id": "0x1:0x2"})


class Counting(Store):
    """Counts the reservations; refuses them while it is away."""

    asked = 0
    away = False

    def reserve(self, attempt: Attempt, amount: int, limit: int | None) -> bool:
        self.asked += 1
        if self.away:
            raise StoreUnavailableError("away")
        return super().reserve(attempt, amount, limit)

    def reserved(self) -> int:
        with self.database.read() as connection:
            return int(connection.exec_driver_sql("SELECT sum(credits_reserved) FROM jobs").scalar_one())


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Counting]:
    with Counting.open(sqlite_url) as store:
        World(store).open(RUN)
        yield store


@pytest.fixture
def attempt(store: Counting) -> Attempt:
    return World(store).claim(RUN, "search")


def ended(allowance: Allowance) -> int:
    return allowance.used_by(Exchange(REQUEST, 1, True, datetime(2026, 11, 29, tzinfo=UTC), 1))


def test_one_block_serves_a_thousand_calls_and_goes_back(store: Counting, attempt: Attempt) -> None:
    allowance = Allowance(store, attempt, None)
    for _ in range(1_000):
        allowance.admit(REQUEST)
        allowance.settle(ended(allowance))
    assert store.asked == 1
    assert store.reserved() == UNLIMITED_BLOCK
    allowance.close()
    assert store.reserved() == 0


def test_what_is_in_flight_or_not_stored_yet_is_reserved(store: Counting, attempt: Attempt) -> None:
    allowance = Allowance(store, attempt, None)
    for number in range(1, 200):
        allowance.admit(REQUEST)
        assert 0 <= store.reserved() - number * REQUEST.credits < UNLIMITED_BLOCK
    for _ in range(100):
        ended(allowance)
    allowance.close()
    assert store.reserved() == 199 * REQUEST.credits


def test_a_database_that_is_away_is_asked_once_until_it_is_back(store: Counting, attempt: Attempt) -> None:
    allowance = Allowance(store, attempt, None)
    store.away = True
    for _ in range(50):
        allowance.admit(REQUEST)
    assert store.asked == 1
    store.away = False
    allowance.settle(ended(allowance))
    allowance.admit(REQUEST)
    assert store.asked == 2
