"""What a rerun would set off, edge by edge, with what it costs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.engine.planning.preview import RerunPreview, rerun_preview
from collection_pipeline.engine.planning.state import JobState, RunState
from collection_pipeline_tests.engine.builders import (
    BEFORE_NINE,
    DETAILS,
    MOMENT,
    NEWS,
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

COST = {"search_results": 2, "detail_pages": 40, "news_mentions": 5, "daily_report": 0}


def preview(graph: Graph, run: RunState, job_id: str) -> RerunPreview:
    return rerun_preview(graph, run, job_id, BEFORE_NINE, COST)


def effects(found: RerunPreview) -> dict[str, str]:
    return {f"{each.edge.upstream} → {each.consumer}": each.effect for each in found.effects}


def test_everything_behind_a_rerun_search_follows_once_and_costs_its_credits() -> None:
    found = preview(collection_graph(), run_state(WHOLE), "search_results")
    assert found.runs == ("search_results", "detail_pages", "news_mentions", "daily_report")
    assert found.credits == 47
    assert set(effects(found).values()) == {"follows"}
    assert found.outdated == ()


def test_a_pinned_report_stays_and_becomes_outdated() -> None:
    found = preview(collection_graph("pin"), run_state(WHOLE), "detail_pages")
    assert effects(found) == {
        "detail_pages → news_mentions": "follows",
        "detail_pages → daily_report": "stays pinned",
        "news_mentions → daily_report": "stays pinned",
    }
    assert found.outdated == ("daily_report",)
    assert found.credits == 45


def test_a_pinned_edge_is_taken_along_when_its_consumer_runs_for_another() -> None:
    graph = Graph.build([job("a"), job("b", edge("a")), job("c", edge("a", "hard", "pin"), edge("b"))])
    a, b = artifact("a"), artifact("b")
    found = preview(graph, run_state({"a": done("a"), "b": done("b", a=a), "c": done("c", a=a, b=b)}), "a")
    assert effects(found) == {"a → b": "follows", "a → c": "taken along", "b → c": "follows"}


def test_repairing_search_starts_what_waited_and_restarts_what_failed_or_was_skipped() -> None:
    jobs: dict[str, JobState] = {
        "search_results": failed(),
        "daily_report": done("daily_report", detail_pages=None, news_mentions=None),
    }
    found = preview(collection_graph(), run_state(jobs), "search_results")
    assert effects(found)["search_results → detail_pages"] == "starts"
    assert effects(found)["detail_pages → daily_report"] == "follows"

    jobs["search_results"] = done("search_results")
    jobs["detail_pages"] = failed(search_results=SEARCH)
    jobs["news_mentions"] = state("skipped", attempted={"detail_pages": None})
    found = preview(collection_graph(), run_state(jobs), "search_results")
    assert effects(found)["search_results → detail_pages"] == "restarts"
    assert effects(found)["detail_pages → news_mentions"] == "restarts"


def test_a_consumer_that_another_edge_blocks_is_said_to_be_blocked() -> None:
    graph = Graph.build([job("a"), job("broken"), job("b", edge("a"), edge("broken"))])
    found = preview(graph, run_state({"a": done("a"), "broken": failed()}), "a")
    assert effects(found) == {"a → b": "blocked"}
    assert found.runs == ("a",)


def test_an_edge_that_is_new_in_the_graph_is_not_followed() -> None:
    graph = Graph.build([job("new"), job("b", edge("new"))])
    found = preview(graph, run_state({"new": done("new"), "b": done("b")}), "new")
    assert effects(found) == {"new → b": "unaffected"}


def test_a_rerun_that_the_gate_would_refuse_sets_off_nothing() -> None:
    found = preview(collection_graph(), run_state({"search_results": failed()}), "detail_pages")
    assert found.decision.readiness == "blocked"
    assert (found.effects, found.runs, found.credits) == ((), (), 0)


def test_what_is_running_downstream_finishes_and_then_follows() -> None:
    jobs = {**WHOLE, "daily_report": state("running", attempted={"detail_pages": DETAILS, "news_mentions": NEWS})}
    assert "daily_report" in preview(collection_graph(), run_state(jobs), "detail_pages").runs


@pytest.mark.parametrize("job_id", ["search_results", "daily_report"])
def test_a_preview_changes_nothing(job_id: str) -> None:
    run = run_state(WHOLE)
    before = dict(run.jobs)
    rerun_preview(collection_graph(), run, job_id, MOMENT + timedelta(days=1), COST)
    assert run.jobs == before


def test_the_preview_in_lines() -> None:
    assert preview(collection_graph("pin"), run_state(WHOLE), "detail_pages").lines() == [
        "detail_pages → news_mentions: follows",
        "detail_pages → daily_report: stays pinned",
        "news_mentions → daily_report: stays pinned",
        "Becomes outdated: daily_report.",
        "Runs detail_pages, news_mentions; about 45 API credits.",
    ]


def test_what_nobody_knows_the_cost_of_is_said_to_be_not_counted() -> None:
    found = rerun_preview(collection_graph("pin"), run_state(WHOLE), "detail_pages", BEFORE_NINE, {"detail_pages": 40})
    assert found.lines()[-1] == (
        "Runs detail_pages, news_mentions; at least 40 API credits; not counted: news_mentions."
    )
