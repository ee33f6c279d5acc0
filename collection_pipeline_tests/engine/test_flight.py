"""In flight is what runs, and what a live Dagster run will still come to without anybody asking again."""

from __future__ import annotations

from collection_pipeline.engine.planning.flight import LastAttempt, PlannedRun, in_flight
from collection_pipeline_tests.engine.builders import collection_graph

GRAPH = collection_graph()
CHAIN = PlannedRun("morning", frozenset(GRAPH.jobs))


def by(dagster_run_id: str, **outcomes: str) -> dict[str, LastAttempt]:
    return {job_id: LastAttempt(dagster_run_id, outcome) for job_id, outcome in outcomes.items()}  # type: ignore[arg-type]


def test_without_dagster_runs_only_what_runs_is_in_flight() -> None:
    assert in_flight([], GRAPH, by("gone", search_results="running", detail_pages="failed")) == {"search_results"}


def test_a_queued_chain_is_in_flight_as_a_whole() -> None:
    assert in_flight([CHAIN], GRAPH, {}) == set(GRAPH.jobs)


def test_what_the_dagster_run_has_finished_no_longer_is() -> None:
    attempts = by("morning", search_results="done", detail_pages="running")
    assert in_flight([CHAIN], GRAPH, attempts) == {"detail_pages", "news_mentions", "daily_report"}


def test_dagster_never_starts_what_is_behind_a_failed_step_however_far_down() -> None:
    assert in_flight([CHAIN], GRAPH, by("morning", search_results="failed")) == set()
    assert in_flight([CHAIN], GRAPH, by("morning", search_results="done", detail_pages="skipped")) == set()


def test_a_failure_in_another_dagster_run_stops_nothing_in_this_one() -> None:
    assert in_flight([CHAIN], GRAPH, by("yesterday", search_results="failed")) == set(GRAPH.jobs)


def test_only_upstreams_in_the_same_dagster_run_hold_a_step_back() -> None:
    alone = PlannedRun("evening", frozenset({"news_mentions"}))
    attempts = by("morning", search_results="failed")
    assert in_flight([alone], GRAPH, attempts) == {"news_mentions"}


def test_a_rerun_elsewhere_does_not_make_a_finished_step_look_planned() -> None:
    """The morning's chain is past search, or it could not be at its details."""
    attempts = {**by("morning", detail_pages="running"), **by("noon", search_results="done")}
    assert "search_results" not in in_flight([CHAIN], GRAPH, attempts)


def test_a_late_report_that_its_dagster_run_holds_back_may_be_started_elsewhere() -> None:
    attempts = by("morning", search_results="done", detail_pages="running")
    assert in_flight([CHAIN], GRAPH, attempts, late={"daily_report"}) == {"detail_pages", "news_mentions"}


def test_the_late_report_is_in_flight_again_once_it_is_started_elsewhere() -> None:
    attempts = by("morning", search_results="done", detail_pages="running")
    evening = PlannedRun("evening", frozenset({"daily_report"}))
    assert "daily_report" in in_flight([CHAIN, evening], GRAPH, attempts, late={"daily_report"})


def test_a_late_report_whose_upstreams_are_finished_is_about_to_start() -> None:
    attempts = by("morning", search_results="done", detail_pages="done", news_mentions="done")
    assert in_flight([CHAIN], GRAPH, attempts, late={"daily_report"}) == {"daily_report"}
