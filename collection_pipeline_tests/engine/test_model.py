"""Whole days in the model world, step by step: planner, flight and gate together, without store and Dagster."""

from __future__ import annotations

from datetime import timedelta

from collection_pipeline_tests.engine.builders import collection_graph
from collection_pipeline_tests.engine.model import DagsterRun, World

TODAY = "2026-11-29"
YESTERDAY = "2026-11-28"


def world_with_yesterday() -> World:
    """A world in which yesterday went well."""
    world = World(collection_graph())
    work_off(world, world.launch(YESTERDAY, world.graph.jobs, automatic=True))
    return world


def work_off(world: World, run: DagsterRun) -> None:
    """Let a Dagster run do all that it comes to, successfully."""
    while startable := world.startable(run):
        world.start(run, startable[0])
        if run.steps[startable[0]] == "running":
            world.finish(run, startable[0], "succeeded")


def statuses(world: World) -> list[str]:
    return [decision.status for decision in world.plan(TODAY).decisions.values()]


def reads(world: World, job_id: str) -> dict[str, str | None]:
    """What a job's artifact stands on, by upstream: the run it comes from."""
    standing = world.rows[TODAY][job_id].standing
    assert standing is not None
    return {upstream: None if artifact is None else artifact.run_id for upstream, artifact in standing.inputs.items()}


def test_a_normal_day_is_one_dagster_run() -> None:
    world = world_with_yesterday()
    morning = world.launch(TODAY, world.graph.jobs, automatic=True)
    assert world.tick(TODAY) is None
    work_off(world, morning)
    assert statuses(world) == ["done"] * 4
    assert world.tick(TODAY) is None
    assert world.plan(TODAY).settled


def test_a_failed_search_degrades_the_report_at_once_and_a_rerun_makes_it_whole() -> None:
    world = world_with_yesterday()
    morning = world.launch(TODAY, world.graph.jobs, automatic=True)
    world.start(morning, "search_results")
    world.finish(morning, "search_results", "failed")
    requested = world.tick(TODAY)
    assert requested is not None
    assert requested.job_ids == {"daily_report"}
    work_off(world, requested)
    assert statuses(world) == ["failed", "pending", "pending", "done"]
    assert reads(world, "daily_report") == {"detail_pages": YESTERDAY, "news_mentions": None}

    work_off(world, world.launch(TODAY, ["search_results"], automatic=False))
    while again := world.tick(TODAY):
        work_off(world, again)
    assert statuses(world) == ["done"] * 4
    assert reads(world, "daily_report") == {"detail_pages": TODAY, "news_mentions": TODAY}


def test_details_alone_never_run_on_an_empty_search() -> None:
    world = world_with_yesterday()
    morning = world.launch(TODAY, ["search_results"], automatic=True)
    world.start(morning, "search_results")
    world.finish(morning, "search_results", "unusable")
    for automatic in (False, True):
        assert world.start(world.launch(TODAY, ["detail_pages"], automatic=automatic), "detail_pages") == "refused"


def test_the_report_does_not_wait_past_its_deadline_for_the_dagster_run_that_holds_it_back() -> None:
    """The whole day is one Dagster run, which would start the report only after the details."""
    world = world_with_yesterday()
    morning = world.launch(TODAY, world.graph.jobs, automatic=True)
    world.start(morning, "search_results")
    world.finish(morning, "search_results", "succeeded")
    world.start(morning, "detail_pages")
    assert world.tick(TODAY) is None

    world.pass_time(timedelta(hours=10))
    late = world.tick(TODAY)
    assert late is not None
    assert late.job_ids == {"daily_report"}
    assert world.tick(TODAY) is None, "requested twice"
    work_off(world, late)
    assert reads(world, "daily_report") == {"detail_pages": YESTERDAY, "news_mentions": None}
    assert world.tick(TODAY) is None

    world.finish(morning, "detail_pages", "succeeded")
    work_off(world, morning)
    assert reads(world, "daily_report") == {"detail_pages": TODAY, "news_mentions": TODAY}
    assert world.tick(TODAY) is None


def test_an_automatic_start_with_nothing_to_do_makes_no_version_and_a_persons_does() -> None:
    world = world_with_yesterday()
    work_off(world, world.launch(TODAY, world.graph.jobs, automatic=True))
    assert world.start(world.launch(TODAY, ["daily_report"], automatic=True), "daily_report") == "nothing to do"
    assert world.start(world.launch(TODAY, ["daily_report"], automatic=False), "daily_report") == "started"


def test_a_second_attempt_at_the_same_job_is_refused_while_the_first_runs() -> None:
    world = World(collection_graph())
    first, second = (world.launch(TODAY, ["search_results"], automatic=False) for _ in range(2))
    assert world.start(first, "search_results") == "started"
    assert world.start(second, "search_results") == "held"


def test_a_retracted_artifact_takes_along_what_stands_on_it_also_in_other_runs() -> None:
    world = world_with_yesterday()
    morning = world.launch(TODAY, world.graph.jobs, automatic=True)
    world.start(morning, "search_results")
    world.finish(morning, "search_results", "failed")
    degraded = world.tick(TODAY)
    assert degraded is not None
    work_off(world, degraded)

    withdrawn = {(each.run_id, each.job_id) for each in world.retract(YESTERDAY, "detail_pages")}

    assert withdrawn == {
        (YESTERDAY, "detail_pages"),
        (YESTERDAY, "news_mentions"),
        (YESTERDAY, "daily_report"),
        (TODAY, "daily_report"),
    }
    assert world.plan(TODAY).decisions["daily_report"].blocked, "nothing is left to fall back to"
    assert world.plan(YESTERDAY).decisions["detail_pages"].status == "failed"


def test_a_backfilled_old_run_never_reads_a_later_one() -> None:
    world = World(collection_graph())
    work_off(world, world.launch(TODAY, world.graph.jobs, automatic=True))
    old = world.launch(YESTERDAY, world.graph.jobs, automatic=False)
    world.start(old, "search_results")
    world.finish(old, "search_results", "failed")
    world.tick(YESTERDAY)
    assert world.plan(YESTERDAY).decisions["daily_report"].blocked


def test_two_degraded_days_in_a_row_do_not_chain_into_fresh() -> None:
    """Details of the 25th carry the report for three days and no further."""
    world = World(collection_graph())
    work_off(world, world.launch("2026-11-25", world.graph.jobs, automatic=True))
    for day, readiness in (("26", "run"), ("27", "run"), ("28", "run"), ("29", "blocked")):
        run_id = f"2026-11-{day}"
        broken = world.launch(run_id, ["search_results"], automatic=True)
        world.start(broken, "search_results")
        world.finish(broken, "search_results", "failed")
        assert world.plan(run_id).decisions["daily_report"].readiness == readiness
        if requested := world.tick(run_id):
            work_off(world, requested)
