"""What the decision table leaves open, a test for each sentence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.engine.planning.planner import Decision, plan
from collection_pipeline.engine.planning.state import Artifact, JobState
from collection_pipeline_tests.engine.builders import (
    AFTER_NINE,
    BEFORE_NINE,
    DETAILS,
    MOMENT,
    NINE,
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

A1, A2 = artifact("a", 1), artifact("a", 2)
YESTERDAY = artifact("detail_pages", run_id="2026-11-28")


def decide(
    graph: Graph, jobs: dict[str, JobState], *fallbacks: Artifact, now: datetime = BEFORE_NINE
) -> dict[str, Decision]:
    return dict(plan(graph, run_state(jobs, *fallbacks), now).decisions)


def pair(policy: str = "hard", on_rerun: str = "follow") -> Graph:
    return Graph.build([job("a"), job("b", edge("a", policy, on_rerun), deadline=NINE)])  # type: ignore[arg-type]


# the normal day


def test_a_new_run_requests_the_whole_chain_as_one() -> None:
    decided = plan(collection_graph(), run_state({}), BEFORE_NINE)
    assert decided.requests == ("search_results", "detail_pages", "news_mentions", "daily_report")
    assert [each.job_id for each in decided.decisions.values() if each.due] == ["search_results"]


def test_a_run_in_which_everything_succeeded_is_settled_and_requests_nothing() -> None:
    decided = plan(collection_graph(), run_state(WHOLE), AFTER_NINE)
    assert decided.settled
    assert decided.requests == ()


# failure travels as "blocked", and only what was attempted is failed


def test_behind_a_failed_search_details_and_news_are_pending_and_the_report_degrades_at_once() -> None:
    decided = plan(collection_graph(), run_state({"search_results": failed()}, YESTERDAY), BEFORE_NINE)
    assert [each.status for each in decided.decisions.values()] == ["failed", "pending", "pending", "pending"]
    assert [each.blocked for each in decided.decisions.values()] == [False, True, True, False]
    assert decided.requests == ("daily_report",)
    assert decided.decisions["daily_report"].inputs == {"detail_pages": YESTERDAY, "news_mentions": None}


def test_behind_failed_details_news_is_skipped_and_starts_by_itself_once_they_are_repaired() -> None:
    jobs = {"search_results": done("search_results"), "detail_pages": failed(search_results=SEARCH)}
    assert decide(collection_graph(), jobs)["news_mentions"].skips

    jobs["news_mentions"] = state("skipped", attempted={"detail_pages": None})
    assert not decide(collection_graph(), jobs)["news_mentions"].wanted

    jobs["detail_pages"] = done("detail_pages", search_results=SEARCH)
    assert decide(collection_graph(), jobs)["news_mentions"].due


def test_a_skipped_job_stays_skipped_while_its_other_inputs_come_and_go() -> None:
    graph = Graph.build([job("a"), job("c"), job("b", edge("a", "skip"), edge("c", "degrade"))])
    jobs = {"a": failed(), "c": done("c"), "b": state("skipped", attempted={"a": None, "c": None})}
    decided = plan(graph, run_state(jobs), BEFORE_NINE)
    assert not decided.decisions["b"].skips
    assert decided.settled


# usable is about artifacts, not about the last attempt


def test_when_a_rerun_fails_the_earlier_version_of_this_run_stands() -> None:
    decided = decide(pair(), {"a": failed(A1), "b": done("b", a=A1)})
    assert decided["a"].status == "failed"
    assert decided["b"].status == "done"


def test_while_an_upstream_is_rerun_its_consumers_wait_although_an_older_version_exists() -> None:
    assert decide(pair(), {"a": state("running", A1, {})})["b"].readiness == "wait"


# who starts again by itself


def test_a_failed_job_starts_again_when_its_inputs_changed_and_only_then() -> None:
    assert not decide(pair(), {"a": done("a", 1), "b": failed(a=A1)})["b"].wanted
    assert decide(pair(), {"a": done("a", 2), "b": failed(a=A1)})["b"].due


def test_equal_content_and_as_of_changes_nothing() -> None:
    same = Artifact("a", A1.run_id, 2, A1.as_of, A1.content_hash)
    graph = pair()
    assert not decide(graph, {"a": state("done", same, {}), "b": done("b", a=A1)})["b"].wanted
    assert not decide(graph, {"a": state("done", same, {}), "b": failed(a=A1)})["b"].wanted


def test_equal_content_with_another_as_of_is_a_change() -> None:
    fresher = Artifact("a", A1.run_id, 2, A1.as_of + timedelta(hours=1), A1.content_hash)
    assert decide(pair(), {"a": state("done", fresher, {}), "b": done("b", a=A1)})["b"].due


def test_equal_data_of_another_run_is_a_change() -> None:
    """A report that fell back says whose data it shows, so it follows also when its own run's are equal."""
    earlier = Artifact("a", "2026-11-28.2", 1, A1.as_of, A1.content_hash)
    assert decide(pair("degrade"), {"a": done("a"), "b": done("b", a=earlier)})["b"].due


def test_a_failed_job_about_to_start_again_is_not_unavailable() -> None:
    graph = Graph.build([job("a"), job("b", edge("a")), job("c", edge("b", "degrade"))])
    jobs = {"a": done("a", 2), "b": failed(a=A1)}
    assert decide(graph, jobs, artifact("b", run_id="2026-11-28"))["c"].readiness == "wait"


def test_a_job_that_never_got_to_start_is_not_requested_for_ever() -> None:
    assert not decide(pair(), {"a": state("failed")})["a"].wanted


# follow and pin


def test_follow_runs_again_on_new_data_and_pin_becomes_outdated() -> None:
    jobs = {"a": done("a", 2), "b": done("b", a=A1)}
    follower, pinned = decide(pair(), jobs)["b"], decide(pair(on_rerun="pin"), jobs)["b"]
    assert follower.due
    assert follower.status == "pending"
    assert not follower.outdated
    assert not pinned.wanted
    assert pinned.status == "done"
    assert pinned.outdated


def test_a_pinned_job_is_outdated_also_while_its_upstream_runs_once_more() -> None:
    assert decide(pair(on_rerun="pin"), {"a": state("running", A2, {}), "b": done("b", a=A1)})["b"].outdated


def test_pin_protects_an_artifact_so_a_job_without_one_runs_on_every_change() -> None:
    assert decide(pair(on_rerun="pin"), {"a": done("a", 2), "b": failed(a=A1)})["b"].due


@pytest.mark.parametrize("policy", ["degrade", "optional"])
def test_follow_gains_but_never_goes_down(policy: str) -> None:
    graph = pair(policy)
    assert not decide(graph, {"a": failed(), "b": done("b", a=A1)})["b"].wanted
    assert decide(graph, {"a": done("a"), "b": done("b", a=None)})["b"].due


def test_a_degraded_report_follows_its_recovered_details_and_ignores_another_fallback() -> None:
    graph = collection_graph()
    degraded = done("daily_report", detail_pages=YESTERDAY, news_mentions=None)
    broken = {
        "search_results": done("search_results"),
        "detail_pages": failed(search_results=SEARCH),
        "daily_report": degraded,
    }
    broken["news_mentions"] = state("skipped", attempted={"detail_pages": None})
    newer = artifact("detail_pages", 2, run_id="2026-11-28")
    assert not decide(graph, broken, newer)["daily_report"].wanted

    repaired = {
        **broken,
        "detail_pages": done("detail_pages", search_results=SEARCH),
        "news_mentions": done("news_mentions", detail_pages=DETAILS),
    }
    assert decide(graph, repaired, newer)["daily_report"].due


# contradictory edges


def test_a_job_that_holds_an_artifact_is_never_skipped() -> None:
    graph = Graph.build([job("a"), job("c"), job("b", edge("a", "skip", "pin"), edge("c"))])
    decided = plan(
        graph, run_state({"a": failed(), "c": done("c", 2), "b": done("b", a=A1, c=artifact("c", 1))}), BEFORE_NINE
    )
    assert not decided.decisions["b"].skips
    assert decided.decisions["b"].status == "done"
    assert decided.settled


def test_a_job_that_would_follow_but_is_blocked_keeps_its_artifact_for_its_consumers() -> None:
    graph = Graph.build([job("a"), job("c"), job("b", edge("a", "hard", "pin"), edge("c")), job("d", edge("b"))])
    jobs = {"a": failed(), "c": done("c", 2), "b": done("b", a=A1, c=artifact("c", 1))}
    decided = decide(graph, jobs)
    assert decided["b"].blocked
    assert decided["b"].status == "pending"
    assert decided["d"].due
    assert decided["d"].inputs == {"b": artifact("b")}


# shelf life: seen from the run's moment, by what the data speaks of


@pytest.mark.parametrize(
    ("age", "resolution"),
    [
        (timedelta(hours=36, seconds=1), "fallback"),
        (timedelta(days=3), "fallback"),
        (timedelta(days=3, seconds=1), "blocked"),
    ],
)
def test_a_fallback_past_its_warn_window_is_used_and_past_its_fail_window_refused(
    age: timedelta, resolution: str
) -> None:
    old = artifact("a", run_id="2026-11-28", as_of=MOMENT - age)
    (decision,) = decide(pair("degrade"), {"a": failed()}, old)["b"].edges
    assert decision.resolution == resolution


def test_the_age_of_a_degraded_fallback_is_that_of_the_data_it_stands_on() -> None:
    produced_yesterday_on_old_data = artifact("a", run_id="2026-11-28", as_of=MOMENT - timedelta(days=4))
    assert decide(pair("degrade"), {"a": failed()}, produced_yesterday_on_old_data)["b"].blocked


def test_a_fallback_serves_degrade_edges_only() -> None:
    for policy, readiness in (("hard", "blocked"), ("skip", "skip"), ("optional", "run")):
        decision = decide(pair(policy), {"a": failed()}, artifact("a", run_id="2026-11-28"))["b"]
        assert decision.readiness == readiness
        assert decision.inputs == {"a": None}


# lateness


def test_an_upstream_counts_as_late_through_everything_it_waits_for() -> None:
    graph = Graph.build([job("root"), job("a", edge("root")), job("b", edge("a", "degrade"), deadline=NINE)])
    jobs = {"root": RUNNING}
    fallback = artifact("a", run_id="2026-11-28")
    assert decide(graph, jobs, fallback, now=BEFORE_NINE)["b"].readiness == "wait"
    assert decide(graph, jobs, fallback, now=AFTER_NINE)["b"].due


def test_without_a_deadline_no_upstream_is_ever_late() -> None:
    graph = Graph.build([job("a"), job("b", edge("a", "optional"))])
    assert decide(graph, {"a": RUNNING}, now=MOMENT + timedelta(days=30))["b"].readiness == "wait"


def test_a_deadline_is_the_first_after_the_run_was_opened_in_its_own_time_zone() -> None:
    from collection_pipeline.engine.planning.graph import Deadline
    from collection_pipeline.engine.planning.lateness import deadline_of

    berlin = job("b", deadline=Deadline("0 9 * * *", "Europe/Berlin"))
    assert deadline_of(berlin, datetime(2026, 3, 28, 7, 59, tzinfo=UTC)) == datetime(2026, 3, 28, 8, tzinfo=UTC)
    # opened after the day's deadline: tomorrow's, an hour earlier in UTC as summer time begins
    assert deadline_of(berlin, datetime(2026, 3, 28, 8, 0, tzinfo=UTC)) == datetime(2026, 3, 29, 7, tzinfo=UTC)


# the graph changes under a run


def test_an_edge_that_is_new_in_the_graph_reruns_nothing_that_has_an_artifact() -> None:
    graph = Graph.build([job("a"), job("new"), job("b", edge("a"), edge("new"))])
    decided = decide(graph, {"a": done("a"), "b": done("b", a=A1)})
    assert decided["new"].due
    assert not decided["b"].wanted
    assert not decide(graph, {"a": done("a"), "new": done("new"), "b": done("b", a=A1)})["b"].wanted


def test_a_failed_job_runs_again_when_an_edge_it_read_is_gone() -> None:
    graph = Graph.build([job("a"), job("b", edge("a"))])
    assert decide(graph, {"a": done("a"), "b": failed(a=A1, removed=artifact("removed"))})["b"].due
    assert not decide(graph, {"a": done("a"), "b": failed(a=A1, removed=None)})["b"].wanted
    assert not decide(graph, {"a": done("a"), "b": done("b", a=A1, removed=artifact("removed"))})["b"].wanted


def test_jobs_that_left_the_graph_are_left_alone() -> None:
    assert list(decide(pair(), {"removed": RUNNING})) == ["a", "b"]


# requests


def test_nothing_in_flight_is_requested_again() -> None:
    assert plan(pair(), run_state({"a": state(in_flight=True)}), BEFORE_NINE).requests == ()


def test_a_request_takes_along_only_jobs_that_wait_for_nothing_else() -> None:
    graph = Graph.build([job("a"), job("slow"), job("b", edge("a")), job("c", edge("a"), edge("slow"))])
    decided = plan(graph, run_state({"slow": RUNNING}), BEFORE_NINE)
    assert decided.requests == ("a", "b")


def test_a_follower_is_not_taken_along_since_the_rerun_may_bring_equal_data() -> None:
    graph = Graph.build([job("root"), job("a", edge("root")), job("b", edge("a"))])
    jobs = {"root": done("root", 2), "a": done("a", root=artifact("root", 1)), "b": done("b", a=A1)}
    assert plan(graph, run_state(jobs), BEFORE_NINE).requests == ("a",)


def test_equal_arguments_give_equal_plans() -> None:
    run = run_state({"search_results": failed()}, YESTERDAY)
    assert plan(collection_graph(), run, BEFORE_NINE) == plan(collection_graph(), run, BEFORE_NINE)
