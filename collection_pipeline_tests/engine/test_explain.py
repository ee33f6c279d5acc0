"""The words: root cause first, what was kept, and what to type; the same wherever a plan is shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from collection_pipeline.engine.planning.causes import root_causes
from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.engine.planning.planner import plan
from collection_pipeline.engine.planning.state import Artifact, JobState
from collection_pipeline.engine.words.ages import age, clock, day_of, duration
from collection_pipeline.engine.words.explain import Explanation, WaitsFor
from collection_pipeline.engine.words.facts import Facts, JobFacts
from collection_pipeline.engine.words.summary import cause_text, tick_text
from collection_pipeline.engine.words.why import edge_accounts
from collection_pipeline_tests.engine.builders import (
    AFTER_NINE,
    BEFORE_NINE,
    MOMENT,
    RUNNING,
    SEARCH,
    WHOLE,
    artifact,
    collection_graph,
    done,
    edge,
    failed,
    job,
    run_state,
    state,
)

YESTERDAY = artifact("detail_pages", run_id="2026-11-28", as_of=datetime(2026, 11, 28, 0, 10, tzinfo=UTC))
YESTERDAYS_DETAILS = (
    "detail_pages of 2026-11-28, version 1, data as of 2026-11-28 00:10, yesterday, 23 hours old, shelf life 3 days"
)
AT_SIX = datetime(2026, 11, 29, 6, 12, tzinfo=UTC)
OUT_OF_CREDITS = JobFacts("out of credits", AT_SIX - timedelta(minutes=7), AT_SIX, "0a1b2c3d-4e5f")


def explained(
    jobs: dict[str, JobState],
    *fallbacks: Artifact,
    graph: Graph | None = None,
    facts: Facts | None = None,
    now: datetime = BEFORE_NINE,
) -> Explanation:
    graph = graph or collection_graph()
    run = run_state(jobs, *fallbacks)
    return Explanation(graph, run, plan(graph, run, now), facts or Facts({"search_results": OUT_OF_CREDITS}))


SEARCH_FAILED = {"search_results": failed()}
DETAILS_FAILED = {
    "search_results": done("search_results"),
    "detail_pages": failed(search_results=SEARCH),
    "news_mentions": state("skipped", attempted={"detail_pages": None}),
}
TYPE_SEARCH = "collect rerun search_results 2026-11-29"


# the reason, one line a job


@pytest.mark.parametrize("job_id", ["detail_pages", "news_mentions"])
def test_whatever_is_blocked_names_the_root_cause_and_what_to_type(job_id: str) -> None:
    assert explained(SEARCH_FAILED).reason(job_id) == (
        f"blocked: search_results failed at 06:12 (out of credits); type: {TYPE_SEARCH}"
    )


def test_a_failed_job_says_why_and_which_version_still_stands() -> None:
    words = explained({"search_results": failed(SEARCH)})
    assert words.reason("search_results") == (
        f"failed at 06:12 (out of credits); kept: version 1 of this run; type: {TYPE_SEARCH}"
    )


def test_a_running_job_says_since_when_and_where() -> None:
    assert (
        explained({"search_results": RUNNING}).reason("search_results") == "running since 06:05 in Dagster run 0a1b2c3d"
    )


def test_a_waiting_job_names_what_it_waits_for_in_the_end() -> None:
    assert explained({"search_results": RUNNING}).reason("news_mentions") == (
        "waits: search_results running since 06:05 in Dagster run 0a1b2c3d"
    )


def test_a_job_that_is_due_says_how_to_start_it_without_a_sensor() -> None:
    assert explained({}).reason("search_results") == "due; type: collect run 2026-11-29"


def test_what_waits_for_a_job_that_was_only_stopped_goes_on_with_it() -> None:
    stopped = Facts({"search_results": JobFacts("interrupted", stopped=True)})
    assert explained(SEARCH_FAILED, facts=stopped).next_commands() == ["collect run 2026-11-29"]
    assert explained(SEARCH_FAILED).next_commands() == [TYPE_SEARCH]


def test_a_skipped_job_says_whose_failure_skipped_it_and_what_revives_it() -> None:
    assert explained(DETAILS_FAILED).reason("news_mentions") == (
        "skipped: detail_pages failed; type: collect rerun detail_pages 2026-11-29"
    )


def test_a_degraded_job_says_what_it_stands_on_and_what_it_lacks() -> None:
    report = done("daily_report", detail_pages=YESTERDAY, news_mentions=None)
    facts = Facts({"detail_pages": OUT_OF_CREDITS})
    assert explained({**DETAILS_FAILED, "daily_report": report}, YESTERDAY, facts=facts).reason("daily_report") == (
        f"done: version 1; uses {YESTERDAYS_DETAILS}; without news_mentions (skipped: detail_pages failed at 06:12)"
    )


@pytest.mark.parametrize(("seconds", "warned"), [(0, False), (1, True)])
def test_only_a_fallback_past_its_warn_window_is_warned_about(seconds: int, warned: bool) -> None:
    as_of = MOMENT - timedelta(hours=36, seconds=seconds)
    old = artifact("detail_pages", run_id="2026-11-27", as_of=as_of)
    words = explained({**DETAILS_FAILED, "daily_report": done("daily_report", detail_pages=old)}, old)
    assert ("warned about from 36 hours" in words.reason("daily_report")) == warned


def test_a_warning_comes_after_the_age_and_the_shelf_life() -> None:
    old = artifact("detail_pages", run_id="2026-11-27")
    words = explained({**DETAILS_FAILED, "daily_report": done("daily_report", detail_pages=old)}, old)
    assert "2 days ago, 2 days old, shelf life 3 days, warned about from 36 hours" in words.reason("daily_report")


def test_data_that_is_old_further_up_is_said_too() -> None:
    as_of = MOMENT - timedelta(days=1)
    aged = state("done", Artifact("a", "2026-11-29", 1, as_of, "x", degraded=True), {"root": artifact("root")})
    words = explained({"root": done("root"), "a": aged}, graph=Graph.build([job("root"), job("a", edge("root"))]))
    assert words.reason("a") == "done: version 1; on older data, as of 2026-11-28 00:00"


def test_a_blocked_degrade_edge_says_that_nothing_young_enough_is_there() -> None:
    assert explained(DETAILS_FAILED).reason("daily_report") == (
        "blocked: detail_pages failed and detail_pages has nothing of an earlier run inside its shelf life of 3 days;"
        " type: collect rerun detail_pages 2026-11-29"
    )


def test_an_outdated_job_says_what_moved_on() -> None:
    jobs = {**WHOLE, "detail_pages": done("detail_pages", 2, search_results=SEARCH)}
    jobs["news_mentions"] = done("news_mentions", detail_pages=artifact("detail_pages", 2))
    assert explained(jobs, graph=collection_graph("pin")).reason("daily_report") == (
        "done: version 1; outdated: detail_pages is at version 2, this stands on version 1;"
        " type: collect rerun daily_report 2026-11-29"
    )


def test_what_was_published_with_a_warning_says_which() -> None:
    facts = Facts({"search_results": JobFacts(warnings={"fruitful_queries": "1 of 2 queries found nothing: tea"})})
    said = explained(WHOLE, facts=facts).reason("search_results")
    assert said == "done: version 1; warning: 1 of 2 queries found nothing: tea"


def test_what_stands_on_retracted_data_says_so() -> None:
    facts = Facts({"daily_report": JobFacts(retracted_inputs=("detail_pages",))})
    assert explained(WHOLE, facts=facts).reason("daily_report").endswith("built on retracted data of detail_pages")


TWO_ROOTS = Graph.build([job("a"), job("b"), job("c", edge("a"), edge("b"))])
TYPE_BOTH = ["collect rerun a 2026-11-29", "collect rerun b 2026-11-29"]


def test_a_job_blocked_by_two_failures_names_both_and_both_commands() -> None:
    words = explained({"a": failed(), "b": failed()}, graph=TWO_ROOTS)
    assert words.reason("c") == f"blocked: a failed and b failed; type: {'; '.join(TYPE_BOTH)}"
    assert words.next_commands() == TYPE_BOTH


def test_of_two_failures_one_that_was_only_stopped_goes_on() -> None:
    stopped = Facts({"a": JobFacts("interrupted", stopped=True)})
    words = explained({"a": failed(), "b": failed()}, graph=TWO_ROOTS, facts=stopped)
    assert words.next_commands() == ["collect run 2026-11-29", "collect rerun b 2026-11-29"]


# what it waits for, and what to type


def test_waits_for_lists_each_upstream_with_its_policy_and_the_root_cause() -> None:
    words = explained(SEARCH_FAILED)
    assert words.waits_for("detail_pages") == (WaitsFor("search_results", "hard", "failed at 06:12 (out of credits)"),)
    assert words.waits_for("news_mentions") == (
        WaitsFor("detail_pages", "skip", "blocked: search_results failed at 06:12 (out of credits)"),
    )


def test_finished_and_running_jobs_wait_for_nothing_and_need_no_command() -> None:
    words = explained({**WHOLE, "daily_report": RUNNING})
    for job_id in WHOLE:
        assert words.waits_for(job_id) == ()
        assert words.next_command(job_id) is None


# the gate


def test_the_gate_refuses_in_the_words_of_the_status() -> None:
    words = explained(SEARCH_FAILED)
    assert words.refusal("detail_pages") == (
        f"detail_pages of 2026-11-29 is blocked: search_results failed at 06:12 (out of credits); type: {TYPE_SEARCH}"
    )
    assert explained({"search_results": RUNNING}).refusal("detail_pages") == (
        "detail_pages of 2026-11-29 has to wait: search_results running since 06:05 in Dagster run 0a1b2c3d"
    )
    assert explained({}).refusal("detail_pages") == (
        "detail_pages of 2026-11-29 has to wait: search_results has not run yet;"
        " type: collect run 2026-11-29 --only search_results"
    )
    assert explained(DETAILS_FAILED).refusal("news_mentions") == (
        "news_mentions of 2026-11-29 is skipped: detail_pages failed; type: collect rerun detail_pages 2026-11-29"
    )


# edge by edge


def test_why_accounts_for_every_edge() -> None:
    words = explained(SEARCH_FAILED, YESTERDAY)
    failed_at = "failed at 06:12 (out of credits)"
    blocked = f"blocked: search_results {failed_at}"
    assert [each.line() for each in edge_accounts(words, "daily_report")] == [
        f"detail_pages (degrade, follow): {blocked}; uses {YESTERDAYS_DETAILS}. Why: for the test",
        f"news_mentions (optional, follow): {blocked}; runs without it. Why: for the test",
    ]
    assert [each.line() for each in edge_accounts(words, "detail_pages")] == [
        f"search_results (hard, follow): {failed_at}; blocked until it is repaired. Why: for the test"
    ]


def test_why_says_since_when_an_upstream_is_late_and_which_edge_waits_on() -> None:
    late = edge_accounts(explained({"search_results": RUNNING}, YESTERDAY, now=AFTER_NINE), "daily_report")[0]
    assert late.because == "waits: search_results running since 06:05 in Dagster run 0a1b2c3d, late since 09:00"
    assert late.outcome == f"uses {YESTERDAYS_DETAILS}"


def test_times_are_those_of_the_people_who_read_them() -> None:
    facts = Facts({"search_results": OUT_OF_CREDITS}, ZoneInfo("Asia/Shanghai"))
    assert "failed at 14:12" in explained(SEARCH_FAILED, facts=facts).reason("search_results")


def test_a_reason_of_many_lines_stays_on_one() -> None:
    facts = Facts({"search_results": JobFacts("first\n  second\x0b\tthird")})
    assert "(first second third)" in explained(SEARCH_FAILED, facts=facts).reason("search_results")


# the sensor's tick and the alerts


def test_the_tick_text_says_in_one_line_what_starts_and_what_keeps_the_rest() -> None:
    assert tick_text(explained(SEARCH_FAILED, YESTERDAY)) == (
        "2026-11-29: starts daily_report; search_results failed at 06:12 (out of credits);"
        " detail_pages blocked by search_results; news_mentions blocked by search_results"
    )
    assert tick_text(explained(WHOLE)) == "2026-11-29: settled"


def test_an_alert_says_what_happened_what_it_did_to_whom_and_what_to_type() -> None:
    words = explained(SEARCH_FAILED, YESTERDAY)
    (cause,) = root_causes(words.plan, {})
    assert cause_text(words, cause) == (
        "search_results of 2026-11-29 failed at 06:12 (out of credits). detail_pages is blocked;"
        f" news_mentions is blocked; daily_report uses {YESTERDAYS_DETAILS}; daily_report runs without news_mentions."
        f" Type: {TYPE_SEARCH}"
    )


def test_an_alert_about_a_skipped_job_leaves_the_reason_to_that_of_its_cause() -> None:
    jobs = {
        **WHOLE,
        "detail_pages": failed(search_results=SEARCH),
        "news_mentions": state("skipped", attempted={"detail_pages": None}),
    }
    words = explained(jobs, facts=Facts({"detail_pages": OUT_OF_CREDITS}))
    texts = {cause.kind: cause_text(words, cause) for cause in root_causes(words.plan, {})}
    assert "detail_pages of 2026-11-29 failed at 06:12 (out of credits)." in texts["failed"]
    assert texts["skipped"] == (
        "news_mentions of 2026-11-29 skipped: detail_pages failed at 06:12. Type: collect rerun detail_pages 2026-11-29"
    )


def test_an_alert_about_lateness_names_what_is_running() -> None:
    words = explained({"search_results": RUNNING}, YESTERDAY, now=AFTER_NINE)
    (cause,) = root_causes(words.plan, {})
    assert cause_text(words, cause).startswith(
        "search_results of 2026-11-29 late: running since 06:05 in Dagster run 0a1b2c3d. daily_report uses"
    )


@pytest.mark.parametrize(
    ("lacks_answers", "next_step"),
    [(False, "See: collect status 2026-11-29"), (True, f"Type: {TYPE_SEARCH} --missing-only")],
)
def test_an_alert_about_a_soft_check_offers_to_buy_what_is_missing_and_nothing_else(
    lacks_answers: bool, next_step: str
) -> None:
    warned = JobFacts(lacks_answers=lacks_answers, warnings={"coverage": "1 of 2 calls answered"})
    words = explained(WHOLE, facts=Facts({"search_results": warned}))
    (cause,) = root_causes(words.plan, words.facts.warnings)
    assert cause_text(words, cause) == (
        f"search_results of 2026-11-29 is published with a warning: check coverage: 1 of 2 calls answered. {next_step}"
    )


# ages


@pytest.mark.parametrize(
    ("span", "exact", "rounded"),
    [
        (timedelta(days=3), "3 days", "3 days"),
        (timedelta(days=1), "1 day", "1 day"),
        (timedelta(hours=36), "36 hours", "1 day"),
        (timedelta(hours=1), "1 hour", "1 hour"),
        (timedelta(minutes=90), "90 minutes", "1 hour"),
        (timedelta(seconds=61), "61 seconds", "1 minute"),
        (timedelta(0), "0 seconds", "0 seconds"),
        (timedelta(days=-2), "0 seconds", "0 seconds"),
    ],
)
def test_durations_are_exact_and_ages_rounded_down(span: timedelta, exact: str, rounded: str) -> None:
    assert (duration(span), age(span)) == (exact, rounded)


@pytest.mark.parametrize(
    ("instant", "zone", "word"),
    [
        (MOMENT, "UTC", "earlier today"),
        (MOMENT + timedelta(hours=3), "UTC", "earlier today"),
        (MOMENT - timedelta(minutes=1), "UTC", "yesterday"),
        (MOMENT - timedelta(days=2), "UTC", "2 days ago"),
        # in New York both instants lie on the 28th
        (MOMENT - timedelta(minutes=1), "America/New_York", "earlier today"),
    ],
)
def test_yesterday_is_a_matter_of_calendar_days_where_the_reader_is(instant: datetime, zone: str, word: str) -> None:
    assert day_of(instant, MOMENT, ZoneInfo(zone)) == word


def test_a_time_of_another_day_shows_its_date() -> None:
    assert clock(MOMENT - timedelta(minutes=1), MOMENT, UTC) == "2026-11-28 23:59"
    assert clock(MOMENT, MOMENT, UTC) == "00:00"
