"""The budget of a run is never exceeded, whoever spends it, and what it leaves missing is said and can be bought."""

from __future__ import annotations

from contextlib import suppress

from collection_pipeline.engine.jobs.allowance import BUDGET_SHARE
from collection_pipeline.engine.jobs.spending import PaidCalls, SpendingStoppedError
from collection_pipeline.engine.store import Store
from collection_pipeline.sources.contract import ApiRequest
from collection_pipeline.sources.serpbase import SerpBaseSource
from collection_pipeline_tests import children
from collection_pipeline_tests.failures.conftest import NewDesk
from collection_pipeline_tests.failures.desk import RUN, Desk
from collection_pipeline_tests.failures.publisher import holder
from collection_pipeline_tests.failures.trials import kill_at
from collection_pipeline_tests.store.world import World


def test_it_stops_in_time_and_a_higher_one_buys_only_the_rest(new_desk: NewDesk, sqlite_url: str) -> None:
    desk = new_desk(sqlite_url)

    said = desk.collect("run", RUN, expect=1, COLLECTION_MAX_CREDITS="21")

    assert desk.account.credits_charged == 20
    assert "the budget of 21 credits a run is used up; 9 answers kept, 11 missing for 22 credits" in said
    assert "raise COLLECTION_MAX_CREDITS to 42 or more" in said
    assert f"Type: collect rerun detail_pages {RUN}" in said
    assert "API credits: 20 spent, 0 saved by reuse, 1 left of 21" in said

    said = desk.collect("rerun", "detail_pages", RUN, COLLECTION_MAX_CREDITS="60")

    assert set(desk.statuses().values()) == {"done"}
    assert set(desk.account.charges.values()) == {1}
    assert f"API credits: {desk.account.credits_charged} spent, 18 saved by reuse" in said


def test_two_processes_that_spend_at_once_spend_no_credit_twice(desk: Desk) -> None:
    with Store.open(desk.database_url) as store:
        World(store).open(RUN)
    # Whole blocks of reservations: of an odd one the first to end would give back what the other was just refused.
    budget = 100
    count = 15 * (budget // BUDGET_SHARE)
    buyers = [
        children.start(buy, desk.database_url, desk.base_url, job_id, count, budget) for job_id in ("search", "archive")
    ]
    assert [children.ended(buyer) for buyer in buyers] == [0, 0]

    assert desk.account.credits_charged == budget


def buy(url: str, base_url: str, job_id: str, count: int, max_credits: int) -> None:
    """What each of the two does; together they want more than the budget allows."""
    with Store.open(url) as store:
        attempt = World(store).claim(RUN, job_id, holder(job_id), inputs={})
        source = SerpBaseSource(base_url, "key", concurrency=4)
        calls = PaidCalls(store, lambda: source, attempt, max_credits, lambda *_: None)
        with suppress(SpendingStoppedError):
            calls.fetch(ApiRequest("search", {"q": f"{job_id} {number}"}) for number in range(count))


def test_what_was_in_flight_at_a_kill_counts_as_spent(new_desk: NewDesk, sqlite_url: str) -> None:
    desk = new_desk(sqlite_url, latency_ms=50.0)
    desk.environment |= {"COLLECTION_MAX_CREDITS": "30", "COLLECTION_CONCURRENCY": "4"}
    desk.collect("run", RUN, "--only", "search_results")
    kill_at(desk, 5)

    desk.collect("run", RUN, "--only", "detail_pages", expect=1)

    assert desk.account.credits_charged <= 30
    assert "possibly billed without an answer" in desk.collect("status", RUN, expect=1)
