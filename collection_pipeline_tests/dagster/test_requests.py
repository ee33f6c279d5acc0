"""From what is due to Dagster runs: asked for once, again after a pause when one never started, given up at last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest

from collection_pipeline.automation import collection_job
from collection_pipeline.engine.planning.flight import PlannedRun
from collection_pipeline.engine.runs import progress
from collection_pipeline.engine.runs.launches import REQUESTED_BY, RUN_ID, STEPS_OVER, live_runs
from collection_pipeline.engine.runs.propagation import START_GRACE, run_key
from collection_pipeline.engine.store import Store, StoreUnavailableError, Transition
from collection_pipeline_tests.dagster.in_process import RUN_KEY, InProcess, jobs_of
from collection_pipeline_tests.dagster.servers import has_run
from collection_pipeline_tests.dagster.small_collection import assets, definitions

TODAY = "2026-03-03"

CHAIN = ("search_results", "detail_pages", "news_mentions", "daily_report")


@pytest.fixture
def opened(world: InProcess) -> InProcess:
    """Today's run is open, nobody has started anything, and nothing is late for hours by the real clock."""
    far = datetime.now(UTC) + timedelta(hours=12)
    unhurried = world.changed(*assets(world.script, report_due=f"0 {far.hour} * * *"))
    unhurried.open(TODAY)
    return unhurried


def queued(world: InProcess, jobs: tuple[str, ...] = CHAIN, **tags: str) -> dg.DagsterRun:
    """A Dagster run that was created and has not started."""
    return world.instance.create_run_for_job(
        world.defs.resolve_job_def(collection_job.name).get_subset(
            asset_selection={dg.AssetKey(job_id) for job_id in jobs}
        ),
        tags={"dagster/partition": TODAY, **tags},
        asset_selection=frozenset(dg.AssetKey(job_id) for job_id in jobs),
    )


def taken(world: InProcess) -> dg.DagsterRun:
    """What the sensor requests now, as a Dagster run that has not started."""
    (request,) = world.evaluate()
    return queued(world, jobs_of(request), **request.tags, **{RUN_KEY: request.run_key or ""})


def pass_time(world: InProcess, span: timedelta) -> None:
    """Dagster's own clock is the real one, so pauses are counted from there."""
    world.script.set_clock(datetime.now(UTC) + span)


def test_what_is_queued_is_not_requested_again(opened: InProcess) -> None:
    taken(opened)
    assert opened.evaluate() == []
    assert opened.tick_text() == (
        "2026-03-03: search_results about to start; detail_pages waits for search_results;"
        " news_mentions waits for search_results; daily_report waits for search_results"
    )


def test_a_dagster_run_whose_steps_are_over_holds_nothing_up(opened: InProcess) -> None:
    queued(opened, CHAIN, **{STEPS_OVER: "yes"})
    assert [jobs_of(request) for request in opened.evaluate()] == [CHAIN]


def test_a_run_that_cannot_be_read_holds_up_no_other(opened: InProcess) -> None:
    opened.open("2026-03-02")
    with opened.store.database.write() as connection:
        connection.exec_driver_sql(f"UPDATE runs SET timezone = 'Mars/Olympus' WHERE run_id = '{TODAY}'")
    assert [request.partition_key for request in opened.evaluate()] == ["2026-03-02"]
    queued(opened, CHAIN, **{"dagster/partition": "2026-03-02"})
    told = opened.tick_text()
    assert told is not None
    assert told.startswith("2026-03-02: search_results about to start;")
    assert f"Run {TODAY} was opened in the time zone Mars/Olympus, which this host does not know." in told


def test_who_opened_a_run_has_time_to_create_its_dagster_run(world: InProcess) -> None:
    world.at(f"{TODAY}T06:00")
    world.open(TODAY, ago=timedelta(0))
    assert world.evaluate() == []

    world.script.set_clock(world.script.now() + START_GRACE)
    assert [jobs_of(request) for request in world.evaluate()] == [CHAIN]


def test_what_follows_a_first_attempt_is_requested_at_once(world: InProcess) -> None:
    world.at(f"{TODAY}T06:00")
    world.launch(TODAY, "search_results")
    assert [jobs_of(request) for request in world.evaluate()] == [CHAIN[1:]]


def test_a_run_whose_partition_dagster_does_not_know_is_requested_with_it(opened: InProcess) -> None:
    opened.instance.delete_dynamic_partition(RUN_ID, TODAY)
    opened.evaluate()
    assert opened.instance.has_dynamic_partition(RUN_ID, TODAY)


def test_the_pause_does_not_last_for_hours_when_the_clock_is_set_back(opened: InProcess) -> None:
    opened.instance.report_run_failed(taken(opened))
    pass_time(opened, timedelta(seconds=1))
    assert opened.evaluate() == []

    pass_time(opened, -timedelta(hours=2))
    assert [jobs_of(request) for request in opened.evaluate()] == [CHAIN]


def test_a_run_that_never_started_is_tried_again_after_a_pause_that_doubles_and_then_given_up(
    opened: InProcess,
) -> None:
    for pause in (5, 10):
        opened.instance.report_run_failed(taken(opened))
        pass_time(opened, timedelta(seconds=pause - 1))
        assert opened.evaluate() == []
        pass_time(opened, timedelta(seconds=pause + 1))
    last = taken(opened)
    opened.instance.report_run_failed(last)

    assert opened.evaluate() == []
    assert opened.statuses(TODAY)["search_results"] == "failed"
    assert opened.reason("search_results", TODAY).startswith("failed at ")
    assert f"3 Dagster runs in a row ended before they started the job, the last one {last.run_id}" in opened.reason(
        "search_results", TODAY
    )


def test_a_run_that_was_cancelled_before_it_started_is_not_tried_again(opened: InProcess) -> None:
    opened.instance.report_run_canceled(taken(opened))

    assert opened.evaluate() == []
    assert opened.statuses(TODAY)["search_results"] == "failed"
    assert "was cancelled before it started the job" in opened.reason("search_results", TODAY)


def test_a_run_that_was_pruned_and_is_collected_again_has_nothing_to_do_with_its_namesake(opened: InProcess) -> None:
    opened.instance.report_run_canceled(taken(opened))
    for _ in ("given up", "settled"):
        assert opened.evaluate() == []
    pass_time(opened, timedelta(days=300))
    for removal in opened.store.prune(keep_days=1, keep_runs=0, now=opened.script.now()):
        opened.store.confirm_removal(removal.run_id)
    assert not has_run(opened.store, TODAY)

    opened.open(TODAY)
    assert opened.tick() == [(TODAY, CHAIN)]
    assert opened.statuses(TODAY) == dict.fromkeys(CHAIN, "done")


def test_a_job_that_was_given_up_starts_again_when_its_inputs_change(opened: InProcess) -> None:
    opened.launch(TODAY, "search_results")
    opened.instance.report_run_canceled(taken(opened))
    assert opened.evaluate() == []
    assert opened.statuses(TODAY)["detail_pages"] == "failed"

    opened.tell("search_results", TODAY, edition=2)
    opened.launch(TODAY, "search_results")
    assert opened.tick() == [(TODAY, CHAIN[1:])]
    assert opened.statuses(TODAY) == dict.fromkeys(CHAIN, "done")


def test_a_run_that_met_a_shut_gate_is_no_failure(opened: InProcess) -> None:
    (run,) = opened.store.open_runs()
    opened.tell("search_results", TODAY, then="fail")
    opened.launch(TODAY, "search_results")
    for number in range(4):
        tags = {REQUESTED_BY: "propagation_sensor", RUN_KEY: run_key(run, "detail_pages", 0, number)}
        assert opened.launch(TODAY, "detail_pages", tags=tags).success
    opened.tell("search_results", TODAY)
    opened.launch(TODAY, "search_results")

    requested: list[tuple[str, tuple[str, ...]]] = []
    for number in range(4):
        pass_time(opened, timedelta(minutes=number + 1))
        requested = opened.tick()
    assert requested == [(TODAY, CHAIN[1:])]
    assert opened.statuses(TODAY) == dict.fromkeys(CHAIN, "done")


def test_only_the_jobs_that_a_dagster_run_will_start_are_in_flight(opened: InProcess) -> None:
    details = opened.defs.resolve_job_def("details_job")
    run = opened.instance.create_run_for_job(details, tags={"dagster/partition": TODAY})
    (planned,) = live_runs(opened.instance, opened.collection.graph)[TODAY]
    assert planned == PlannedRun(run.run_id, frozenset({"detail_pages"}))


def test_the_plan_of_a_live_run_without_a_selection_is_read_once(
    opened: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    details = opened.defs.resolve_job_def("details_job")
    run = opened.instance.create_run_for_job(
        details, tags={"dagster/partition": TODAY}, status=dg.DagsterRunStatus.STARTED
    )
    asked: list[str] = []
    all_logs = opened.instance.all_logs

    def counted(dagster_run_id: str, *args: Any, **options: Any) -> Any:
        asked.append(dagster_run_id)
        return all_logs(dagster_run_id, *args, **options)

    monkeypatch.setattr(opened.instance, "all_logs", counted)
    looks = [live_runs(opened.instance, opened.collection.graph) for _ in range(3)]
    assert looks == [{TODAY: [PlannedRun(run.run_id, frozenset({"detail_pages"}))]}] * 3
    assert asked == [run.run_id]


def test_assets_outside_the_collection_may_be_partitioned_by_the_same_days(opened: InProcess) -> None:
    @dg.asset(partitions_def=dg.DailyPartitionsDefinition("2026-01-01"))
    def weather() -> None: ...

    foreign = dg.Definitions([weather], jobs=[dg.define_asset_job("weather_job", [weather])])
    opened.instance.create_run_for_job(
        foreign.resolve_job_def("weather_job"),
        tags={"dagster/partition": TODAY},
    )
    assert [jobs_of(request) for request in opened.evaluate()] == [CHAIN]


def test_a_tick_names_the_run_that_dagster_is_about_to_open(world: InProcess) -> None:
    assert world.tick_text() == "No run is open."
    queued(world)
    assert world.tick_text() == "Dagster starts 2026-03-03."


class TestAlertsOfATick:
    """Ten messages are overdue, and each waits eight seconds for a channel that does not answer."""

    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        clock = [0.0]
        monkeypatch.setattr(progress, "monotonic", lambda: clock[0])
        return clock

    @pytest.fixture
    def overdue(self, opened: InProcess, clock: list[float]) -> InProcess:
        opened.at(f"{TODAY}T06:00")
        bad = {f"failed:job_{number}": "" for number in range(10)}
        opened.store.episode_transitions(TODAY, bad, [], opened.script.now() - timedelta(hours=1))

        def swallow(_store: Store, transitions: Sequence[Transition]) -> None:
            clock[0] += 8.0 * len(transitions)

        defs = definitions(assets(opened.script), opened.script, send=swallow)
        return replace(opened, defs=defs)

    def test_a_channel_that_does_not_answer_holds_no_tick_up_for_long(
        self, overdue: InProcess, clock: list[float]
    ) -> None:
        assert [jobs_of(request) for request in overdue.evaluate()] == [CHAIN]
        assert clock[0] == 16.0

    def test_requests_are_made_whatever_becomes_of_the_messages(
        self, overdue: InProcess, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def gone(*_: Any) -> None:
            raise StoreUnavailableError("the server restarts")

        monkeypatch.setattr(overdue.store, "take_overdue", gone)
        assert [jobs_of(request) for request in overdue.evaluate()] == [CHAIN]
