"""Only root causes alert; one trouble is one episode, whatever shape it takes on the way."""

from __future__ import annotations

from collection_pipeline.engine.planning import causes
from collection_pipeline.engine.planning.causes import RootCause, Warnings, roots
from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.engine.planning.planner import Plan, plan
from collection_pipeline.engine.planning.state import Artifact, JobState
from collection_pipeline_tests.engine.builders import (
    AFTER_NINE,
    BEFORE_NINE,
    DETAILS,
    RUNNING,
    SEARCH,
    artifact,
    collection_graph,
    done,
    edge,
    failed,
    job,
    run_state,
    state,
)

YESTERDAY = artifact("detail_pages", run_id="2026-11-28")
SKIPPED = state("skipped", attempted={"detail_pages": None})


def decided(late: bool = False, *fallbacks: Artifact, **jobs: JobState) -> Plan:
    return plan(collection_graph(), run_state(jobs, *fallbacks), AFTER_NINE if late else BEFORE_NINE)


def root_causes(found: Plan, warnings: Warnings | None = None) -> tuple[RootCause, ...]:
    return causes.root_causes(found, warnings or {})


def healed(found: Plan, key: str, warnings: Warnings | None = None) -> bool:
    return causes.healed(found, key, warnings or {})


def only(found: tuple[RootCause, ...]) -> RootCause:
    (cause,) = found
    return cause


def test_a_normal_day_has_no_causes() -> None:
    assert root_causes(decided()) == ()
    assert root_causes(decided(search_results=RUNNING)) == ()


def test_a_failed_search_is_one_cause_whatever_is_blocked_behind_it() -> None:
    found = decided(search_results=failed())
    cause = only(root_causes(found))
    assert (cause.kind, cause.job_id, cause.key) == ("failed", "search_results", "failed:search_results")
    assert cause.behind == ("detail_pages", "news_mentions", "daily_report")
    assert roots(found, "news_mentions") == ("search_results",)


def test_a_skip_alerts_beside_the_failure_that_led_to_it() -> None:
    found = decided(
        search_results=done("search_results"), detail_pages=failed(search_results=SEARCH), news_mentions=SKIPPED
    )
    assert [cause.key for cause in root_causes(found)] == ["failed:detail_pages", "skipped:news_mentions"]


def test_a_job_blocked_by_two_failures_names_both() -> None:
    graph = Graph.build([job("a"), job("b"), job("c", edge("a"), edge("b")), job("d", edge("c"))])
    assert roots(plan(graph, run_state({"a": failed(), "b": failed()}), BEFORE_NINE), "d") == ("a", "b")


def test_lateness_names_what_everything_waits_for() -> None:
    cause = only(root_causes(decided(True, search_results=RUNNING)))
    assert (cause.kind, cause.job_id, cause.key) == ("late", "search_results", "late:detail_pages")


def test_nobody_is_late_before_the_deadline_or_once_the_report_stands_on_this_run() -> None:
    rerun = {
        "search_results": done("search_results"),
        "detail_pages": state("running", DETAILS, {"search_results": SEARCH}),
        "news_mentions": done("news_mentions", detail_pages=DETAILS),
        "daily_report": done("daily_report", detail_pages=DETAILS, news_mentions=artifact("news_mentions")),
    }
    assert root_causes(decided(False, search_results=RUNNING)) == ()
    assert root_causes(decided(True, **rerun)) == ()


def test_a_degraded_report_is_late_until_its_details_arrive() -> None:
    degraded = done("daily_report", detail_pages=YESTERDAY, news_mentions=None)
    waiting = decided(True, YESTERDAY, search_results=RUNNING, daily_report=degraded)
    assert only(root_causes(waiting)).kind == "late"


def test_lateness_that_moves_on_to_details_and_to_news_stays_one_episode() -> None:
    search_late = only(root_causes(decided(True, search_results=RUNNING)))
    details_running = state("running", attempted={"search_results": SEARCH})
    details_late = only(root_causes(decided(True, search_results=done("search_results"), detail_pages=details_running)))
    news_late = only(
        root_causes(
            decided(
                True,
                search_results=done("search_results"),
                detail_pages=done("detail_pages", search_results=SEARCH),
                news_mentions=state("running", attempted={"detail_pages": DETAILS}),
            )
        )
    )
    key = search_late.episode([])
    assert details_late.episode([key]) == key
    assert news_late.episode([key]) == key


def test_late_that_turns_into_failed_does_not_page_again() -> None:
    key = only(root_causes(decided(True, search_results=RUNNING))).episode([])
    found = decided(True, search_results=failed())
    assert only(root_causes(found)).episode([key]) == key
    assert not healed(found, key)


def test_a_failure_that_is_rerun_past_the_deadline_does_not_page_again_nor_heal_early() -> None:
    key = only(root_causes(decided(search_results=failed()))).episode([])
    found = decided(True, search_results=RUNNING)
    assert only(root_causes(found)).episode([key]) == key
    assert not healed(found, key)


def test_a_second_failure_is_an_episode_of_its_own() -> None:
    cause = only(root_causes(decided(search_results=failed())))
    assert cause.episode(["failed:detail_pages", "skipped:news_mentions"]) == "failed:search_results"


def test_an_episode_heals_when_its_job_has_delivered() -> None:
    repaired = decided(search_results=done("search_results"))
    assert healed(repaired, "failed:search_results")
    assert not healed(repaired, "late:detail_pages")
    assert not healed(decided(search_results=failed(SEARCH)), "failed:search_results")


def test_an_episode_of_a_job_that_left_the_graph_heals() -> None:
    assert healed(decided(), "failed:removed")


def test_many_diamonds_are_walked_once() -> None:
    layers = [job("root")]
    for layer in range(60):
        above = [each.job_id for each in layers[-2:]]
        layers += [job(f"{side}{layer}", *(edge(up) for up in above)) for side in "ab"]
    found = plan(Graph.build(layers), run_state({"root": failed()}), BEFORE_NINE)
    assert roots(found, "b59") == ("root",)


def test_a_soft_check_is_a_cause_of_its_own_until_an_artifact_passes_it() -> None:
    found = decided(search_results=done("search_results"))
    warnings = {"search_results": ["coverage"]}
    cause = only(root_causes(found, warnings))
    assert (cause.kind, cause.job_id, cause.key) == ("check", "search_results", "check:search_results:coverage")
    assert not healed(found, cause.key, warnings)
    assert healed(found, cause.key)
    assert healed(found, "check:gone:coverage")


def test_a_soft_check_does_not_heal_before_there_is_another_artifact() -> None:
    assert not healed(decided(search_results=failed()), "check:search_results:coverage")
    assert not healed(decided(), "check:search_results:coverage")
