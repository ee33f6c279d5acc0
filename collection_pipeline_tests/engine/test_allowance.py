"""Credits are set aside before requests are sent: few times without a budget, never more than it with one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from collection_pipeline.engine.jobs import allowance as module
from collection_pipeline.engine.jobs.allowance import BUDGET_BLOCK, UNLIMITED_BLOCK, Allowance
from collection_pipeline.engine.store import Attempt, Store, StoreUnavailableError
from collection_pipeline.sources.contract import ApiRequest, BudgetExhaustedError, Exchange
from collection_pipeline_tests.store.world import World

RUN = "2026-11-29"
REQUEST = ApiRequest("maps_detail", {"feature_id": "0x1:0x2"})


class Counting(Store):
    """Counts the reservations; refuses so many of them because it is away."""

    asked = 0
    away = 0

    def reserve(self, attempt: Attempt, amount: int, limit: int | None) -> bool:
        self.asked += 1
        if self.away:
            self.away -= 1
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


def admit(allowance: Allowance, times: int) -> None:
    async def story() -> None:
        for _ in range(times):
            await allowance.admit(REQUEST)

    asyncio.run(story())


class TestWithoutABudget:
    def test_one_block_serves_a_thousand_calls_and_goes_back(self, store: Counting, attempt: Attempt) -> None:
        allowance = Allowance(store, attempt, None)
        for _ in range(1_000):
            admit(allowance, 1)
            allowance.settle(ended(allowance))
        assert store.asked == 1
        assert store.reserved() == UNLIMITED_BLOCK
        allowance.close()
        assert store.reserved() == 0

    def test_what_is_in_flight_or_not_stored_yet_is_reserved(self, store: Counting, attempt: Attempt) -> None:
        allowance = Allowance(store, attempt, None)
        for number in range(1, 200):
            admit(allowance, 1)
            assert 0 <= store.reserved() - number * REQUEST.credits < UNLIMITED_BLOCK
        for _ in range(100):
            ended(allowance)
        allowance.close()
        assert store.reserved() == 199 * REQUEST.credits

    def test_a_database_that_is_away_is_asked_once_until_it_is_back(self, store: Counting, attempt: Attempt) -> None:
        allowance = Allowance(store, attempt, None)
        store.away = 1
        admit(allowance, 50)
        assert store.asked == 1
        allowance.settle(ended(allowance))
        admit(allowance, 1)
        assert store.asked == 2


class TestWithABudget:
    def test_it_is_never_exceeded(self, store: Counting, attempt: Attempt) -> None:
        allowance = Allowance(store, attempt, 25)
        admit(allowance, 12)
        with pytest.raises(BudgetExhaustedError, match="the budget of 25 credits a run is used up"):
            admit(allowance, 1)
        assert store.reserved() == 24

    @pytest.mark.parametrize("budget", [25, 64, 222, 1_000])
    def test_all_of_it_can_be_spent_however_it_falls_into_blocks(
        self, store: Counting, attempt: Attempt, budget: int
    ) -> None:
        admit(Allowance(store, attempt, budget), budget // REQUEST.credits)
        assert store.reserved() in (budget, budget - 1)

    def test_one_reservation_serves_all_who_wait_for_it(self, store: Counting, attempt: Attempt) -> None:
        async def story() -> None:
            allowance = Allowance(store, attempt, 10_000)
            await asyncio.gather(*(allowance.admit(REQUEST) for _ in range(BUDGET_BLOCK // REQUEST.credits)))

        asyncio.run(story())
        assert store.asked == 1
        assert store.reserved() == BUDGET_BLOCK

    def test_a_database_that_is_away_for_moments_is_waited_for(
        self, store: Counting, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "PAUSE_S", 0.001)
        store.away = 5
        admit(Allowance(store, attempt, 1_000), 1)
        assert store.asked == 6

    def test_but_not_for_ever(self, store: Counting, attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "PATIENCE_S", 0.0)
        store.away = 1_000
        with pytest.raises(StoreUnavailableError):
            admit(Allowance(store, attempt, 1_000), 1)
