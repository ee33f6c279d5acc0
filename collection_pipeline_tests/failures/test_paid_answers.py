"""What was paid for is never lost and never bought again, whatever is killed when."""

from __future__ import annotations

import random

import pytest

from collection_pipeline.engine.jobs.allowance import UNLIMITED_BLOCK
from collection_pipeline.engine.jobs.recording import WRITE_BATCH
from collection_pipeline_tests.failures.conftest import NewDesk
from collection_pipeline_tests.failures.desk import RUN, Desk
from collection_pipeline_tests.failures.trials import (
    CONCURRENCY,
    LATENCY_MS,
    PRICE,
    THOUSAND_PLACES,
    kill_at,
    run_trial,
)


@pytest.mark.parametrize(("database", "seed"), [("sqlite", 1), ("postgres", 2), ("sqlite", 3)])
def test_a_kill_at_any_moment_costs_at_most_what_was_in_flight(
    new_desk: NewDesk, database: str, seed: int, request: pytest.FixtureRequest
) -> None:
    desk = new_desk(request.getfixturevalue(f"{database}_url"), THOUSAND_PLACES, latency_ms=LATENCY_MS)

    found = run_trial(desk, random.Random(seed), kills=2)

    assert found.rows == found.places == 1000
    assert found.stored_twice == 0
    assert found.lost <= found.kills * (CONCURRENCY + WRITE_BATCH)
    assert PRICE * found.lost <= found.possibly_billed
    assert found.possibly_billed <= found.kills * (PRICE * (CONCURRENCY + 2 * WRITE_BATCH) + UNLIMITED_BLOCK)


def details(desk: Desk) -> int:
    """How many details the source was asked for."""
    return desk.account.requests["maps_detail"]


def test_an_answer_that_broke_off_may_have_been_billed_and_is_shown_apart(new_desk: NewDesk, sqlite_url: str) -> None:
    desk = new_desk(sqlite_url, faults="maps_detail=cut_connection:0.3@tries=1@charged=yes")

    desk.collect("run", RUN, "--only", "search_results")
    desk.collect("run", RUN, "--only", "detail_pages")

    cut = desk.account.faults["maps_detail=cut_connection:0.3@tries=1@charged=yes"]
    assert cut > 0
    said = desk.collect("status", RUN)
    assert f"{desk.account.credits_charged - 2 * cut} spent" in said
    assert f"{2 * cut} possibly billed without an answer" in said


def test_so_may_what_was_in_flight_at_a_kill_without_a_budget(desk: Desk) -> None:
    desk.environment["COLLECTION_CONCURRENCY"] = "4"
    desk.collect("run", RUN, "--only", "search_results")
    kill_at(desk, 5)

    desk.collect("run", RUN, "--only", "detail_pages")

    said = desk.collect("status", RUN)
    assert f"{UNLIMITED_BLOCK} possibly billed without an answer" in said
    unseen = desk.account.credits_charged - desk.one("SELECT sum(credits_charged) FROM requests")
    assert unseen <= UNLIMITED_BLOCK


def test_answers_of_the_trial_never_pass_for_those_of_the_real_service(new_desk: NewDesk, sqlite_url: str) -> None:
    desk = new_desk(sqlite_url)
    said = desk.collect("run", RUN, expect=1, SERPBASE_BASE_URL="", SERPBASE_API_KEY="", COLLECTION_MAX_CREDITS="21")
    assert "9 answers kept" in said
    said = desk.collect("rerun", "detail_pages", RUN, expect=1)
    assert "Rerun what it reads first" in said
    assert details(desk) == 0

    desk.collect("rerun", "search_results", RUN, expect=1)  # finds the same, which moves nothing by itself
    desk.collect("rerun", "detail_pages", RUN)

    assert details(desk) == 20
    label = f"gateway {desk.base_url}"
    made_of = "SELECT DISTINCT source FROM detail_pages JOIN requests USING (request_id) WHERE job_id = 'detail_pages'"
    assert desk.rows(made_of) == [(label,)]
    assert desk.one("SELECT source FROM artifacts WHERE job_id = 'detail_pages'") == label


def test_a_rerun_after_a_published_version_asks_anew(new_desk: NewDesk, sqlite_url: str) -> None:
    desk = new_desk(sqlite_url)
    desk.collect("run", RUN)
    before = details(desk)

    desk.collect("rerun", "detail_pages", RUN)

    assert details(desk) == 2 * before


def test_so_does_one_after_a_failed_check(new_desk: NewDesk, sqlite_url: str) -> None:
    desk = new_desk(sqlite_url, faults="maps_detail=malformed_body:0.5")
    desk.collect("run", RUN, expect=1)
    assert desk.statuses()["detail_pages"] == "failed"
    before = details(desk)

    desk.collect("rerun", "detail_pages", RUN, expect=1)

    assert details(desk) == 2 * before


def test_a_repair_of_a_failed_check_that_fails_itself_goes_on_as_a_repair_also_job_by_job(
    new_desk: NewDesk, sqlite_url: str
) -> None:
    desk = new_desk(sqlite_url, faults="maps_detail=malformed_body:0.5")
    desk.collect("run", RUN, expect=1)
    repair = ("rerun", "detail_pages", RUN, "--missing-only")
    desk.set_faults("maps_detail=unauthorized")
    said = desk.collect(*repair, expect=1)
    assert f"Type: collect {' '.join(repair)}" in said
    desk.set_faults("")
    answered = desk.one(
        "SELECT count(DISTINCT fingerprint) FROM requests WHERE endpoint = 'maps_detail' AND kind = 'ok'"
    )
    before = details(desk)

    desk.collect("run", RUN, "--only", "detail_pages")

    assert details(desk) - before == 20 - answered


def test_one_failed_detail_costs_one_request_to_repair(new_desk: NewDesk, sqlite_url: str) -> None:
    desk = new_desk(sqlite_url)
    desk.collect("run", RUN, "--only", "search_results")
    feature_id = desk.one("SELECT min(feature_id) FROM search_results WHERE run_id = :run", run=RUN)
    desk.set_faults(f"maps_detail=upstream_error@feature_id={feature_id}")
    desk.collect("run", RUN, "--only", "detail_pages")
    assert desk.one("SELECT count(*) FROM detail_pages WHERE run_id = :run", run=RUN) == 19
    desk.set_faults("")
    before = details(desk)

    desk.collect("rerun", "detail_pages", RUN, "--missing-only")

    assert details(desk) - before == 1
    assert desk.one("SELECT count(*) FROM detail_pages WHERE run_id = :run", run=RUN) == 20
