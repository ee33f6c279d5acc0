"""What the steps of a Dagster run make due starts in the same process, at once and without the sensor."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dagster as dg
import pytest

from collection_pipeline.automation import collection_job
from collection_pipeline.engine.jobs import claiming, execution
from collection_pipeline.engine.runs import carrying_on, interrupts
from collection_pipeline.engine.runs.carrying_on import CarryingOn
from collection_pipeline.engine.runs.executing import execute_here
from collection_pipeline.engine.runs.launches import GOES_ON_FROM, RUN_ID, WORKER, process_tag
from collection_pipeline.engine.store import StoreUnavailableError
from collection_pipeline_tests.dagster import small_collection
from collection_pipeline_tests.dagster.in_process import InProcess, failures
from collection_pipeline_tests.dagster.servers import wait_for

YESTERDAY, TODAY = "2026-03-02", "2026-03-03"

ALL_DONE = {"search_results": "done", "detail_pages": "done", "news_mentions": "done", "daily_report": "done"}

DEGRADED = {**ALL_DONE, "detail_pages": "failed", "news_mentions": "skipped"}


@pytest.fixture
def today(world: InProcess) -> InProcess:
    """Yesterday went well; it is six in the morning. No tick of the sensor comes unless a test says so."""
    shipped = world.carrying_on()
    shipped.morning(YESTERDAY, until_settled=False)
    assert shipped.requested_by(YESTERDAY) == ["daily_schedule"], "a normal day is one Dagster run"
    shipped.at(f"{TODAY}T06:00")
    return shipped


def test_details_fail_and_the_report_degrades(today: InProcess) -> None:
    today.tell("detail_pages", TODAY, then="fail")
    today.launch(TODAY)
    assert today.statuses(TODAY) == DEGRADED
    assert today.current("daily_report", TODAY).degraded
    assert today.requested_by(TODAY) == ["a person", "carry_on_executor"]
    assert today.view(TODAY).settled_at is not None


def test_search_fails_and_the_report_degrades_while_details_are_blocked(today: InProcess) -> None:
    today.tell("search_results", TODAY, then="fail")
    today.launch(TODAY)
    pending = {"search_results": "failed", "detail_pages": "pending", "news_mentions": "pending"}
    assert today.statuses(TODAY) == {**pending, "daily_report": "done"}


def test_news_fail_and_the_report_leaves_the_section_out(today: InProcess) -> None:
    today.tell("news_mentions", TODAY, then="fail")
    today.launch(TODAY)
    assert today.statuses(TODAY) == {**ALL_DONE, "news_mentions": "failed"}
    assert "without news_mentions" in today.report(TODAY)


def test_details_recover_and_the_report_is_whole_again(today: InProcess) -> None:
    today.tell("detail_pages", TODAY, then="fail")
    today.launch(TODAY)
    today.tell("detail_pages", TODAY)
    today.launch(TODAY, "detail_pages")
    assert today.statuses(TODAY) == ALL_DONE
    assert not today.current("daily_report", TODAY).degraded


def test_one_job_of_a_new_run_is_launched_and_the_others_follow(today: InProcess) -> None:
    today.launch(TODAY, "search_results")
    assert today.statuses(TODAY) == ALL_DONE
    assert [today.script.starts(job_id, TODAY) for job_id in ALL_DONE] == [1, 1, 1, 1]


def test_what_a_dagster_run_will_start_is_left_to_it(today: InProcess) -> None:
    details = today.defs.resolve_job_def("details_job")
    today.instance.add_dynamic_partitions("run_id", [TODAY])
    today.instance.create_run_for_job(details, tags={"dagster/partition": TODAY})
    today.launch(TODAY, "search_results")
    assert today.statuses(TODAY) == {**dict.fromkeys(ALL_DONE, "pending"), "search_results": "done"}


def test_what_its_own_selection_left_undone_is_due_like_anything_else(today: InProcess) -> None:
    (told,) = failures(today.launch(TODAY, "search_results", "daily_report"))
    assert told.startswith("daily_report of 2026-03-03 has to wait")
    assert today.statuses(TODAY) == ALL_DONE


def test_a_launch_that_is_refused_buys_nothing_else(today: InProcess) -> None:
    (told,) = failures(today.launch(TODAY, "detail_pages"))
    assert told.startswith("detail_pages of 2026-03-03 has to wait")
    assert today.script.starts("search_results", TODAY) == 0


def test_a_worker_is_named_before_its_first_step_which_may_wait_for_a_place(
    today: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it is killed there with all of Dagster, its place in the pool goes to nobody else until somebody knows."""
    begun = []

    def first_step(context: dg.AssetExecutionContext, *_: object) -> Iterator[object]:
        run = today.dagster_run(context.run.run_id)
        begun.append(run.tags.get(WORKER))
        yield from ()
        raise dg.Failure("enough was seen", allow_retries=False)

    monkeypatch.setattr(execution, "execute", first_step)
    today.launch(TODAY, "search_results")
    assert begun == [process_tag()]


def test_a_mistyped_run_id_is_refused_and_nothing_else(today: InProcess) -> None:
    (told,) = failures(today.launch("tomorrow"))
    assert told.startswith("search_results did not start: ")


def test_a_settled_run_stays_as_it_is_though_somebody_added_a_job(today: InProcess) -> None:
    (run,) = today.dagster_runs(YESTERDAY)
    assert _carried_on(today.with_summary(), run) == []


def test_a_dagster_run_of_other_assets_starts_nothing(today: InProcess) -> None:
    @dg.asset(partitions_def=dg.DailyPartitionsDefinition("2026-01-01"))
    def weather() -> None: ...

    foreign = dg.Definitions([weather], jobs=[dg.define_asset_job("weather_job", [weather])])
    today.open(TODAY)
    run = today.instance.create_run_for_job(foreign.resolve_job_def("weather_job"), tags={"dagster/partition": TODAY})
    assert _carried_on(today, run) == []


def test_a_launcher_that_looks_after_its_workers_is_not_confused(
    today: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would look for a worker of what follows, find none, and have Dagster fail it."""
    monkeypatch.setattr(type(today.instance.run_launcher), "supports_check_run_worker_health", True)
    today.tell("detail_pages", TODAY, then="fail")
    today.launch(TODAY)
    assert today.settle() == [(TODAY, ("daily_report",))]


def _carried_on(world: InProcess, run: dg.DagsterRun) -> list[str]:
    """What was executed after the steps of a Dagster run."""
    executed: list[str] = []

    def job() -> dg.JobDefinition:
        executed.append(run.run_id)
        return world.defs.resolve_job_def(collection_job.name)

    CarryingOn(
        collection=world.collection,
        job=job,
        instance=world.instance,
        run=run,
        log=logging.getLogger("test"),
        interrupts=tuple,
    ).carry_on()
    return executed


def test_what_was_interrupted_is_left_to_the_sensor(today: InProcess) -> None:
    today.tell("detail_pages", TODAY, then="interrupt")
    today.launch(TODAY)
    assert today.requested_by(TODAY) == ["a person"]
    assert today.statuses(TODAY) == {**DEGRADED, "daily_report": "pending"}
    assert today.settle() == [(TODAY, ("daily_report",))]


def test_what_follows_is_interrupted_and_nothing_else_starts(today: InProcess) -> None:
    today.tell("detail_pages", TODAY, then="interrupt")
    assert not today.launch(TODAY, "search_results").success
    assert today.requested_by(TODAY) == ["a person", "carry_on_executor"]
    assert today.statuses(TODAY) == {**DEGRADED, "daily_report": "pending"}


@pytest.mark.parametrize("launched", [(), ("search_results",)], ids=["in a step", "carrying on"])
def test_after_an_interrupt_in_one_step_no_other_begins(world: InProcess, launched: tuple[str, ...]) -> None:
    """Dagster takes the step for failed, and would go on with the summary, which depends on the search alone."""
    grown = world.with_summary().carrying_on()
    grown.tell("detail_pages", TODAY, then="interrupt")
    grown.launch(TODAY, *launched)
    assert grown.statuses(TODAY) == {
        **dict.fromkeys(ALL_DONE, "pending"),
        "search_results": "done",
        "detail_pages": "failed",
        "news_mentions": "skipped",
        "summary": "pending",
    }
    assert grown.script.starts("summary", TODAY) == 0


def test_an_interrupt_before_a_step_has_its_job_is_not_taken_for_a_reason_to_try_again(
    today: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        monkeypatch.undo()
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(claiming, "take_graph", interrupted)
    today.launch(TODAY)
    assert [today.script.starts(job_id, TODAY) for job_id in ALL_DONE] == [0, 0, 0, 0]


@pytest.fixture
def _hourly_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_collection, "RETRIES", dg.RetryPolicy(max_retries=1, delay=3600))


@pytest.mark.usefixtures("_hourly_tries", "today")
@pytest.mark.parametrize("launched", [(), ("search_results",)], ids=["in a step", "carrying on"])
def test_an_interrupt_between_two_tries_is_taken_at_once(
    today: InProcess, monkeypatch: pytest.MonkeyPatch, launched: tuple[str, ...]
) -> None:
    """Dagster would sleep on, and begin the second try."""
    overslept = []

    def pause(seconds: float) -> None:
        signal.raise_signal(signal.SIGINT)
        threading.Event().wait(30)
        overslept.append(seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", pause)
    today.tell("detail_pages", TODAY, then="try again later")
    today.launch(TODAY, *launched)
    monkeypatch.undo()
    assert overslept == []
    assert today.script.starts("detail_pages", TODAY) == 1
    assert {run.status.value for run in today.dagster_runs(TODAY)} == {"FAILURE"}
    assert today.settle() == [(TODAY, ("daily_report",))]
    assert "interrupted" in today.reason("detail_pages", TODAY)


def test_what_follows_is_ended_by_itself_though_no_launcher_can(
    today: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupts, "ASKED_EVERY_S", 0.05)
    today.tell("detail_pages", TODAY, held=True)

    def end() -> None:
        wait_for(lambda: today.script.starts("detail_pages", TODAY) > 0, "details to start")
        today.instance.report_run_canceling(today.dagster_runs(TODAY)[-1])

    with ThreadPoolExecutor(1) as thread:
        ended = thread.submit(end)
        assert today.launch(TODAY, "search_results").success
        ended.result()
    assert [run.status.value for run in today.dagster_runs(TODAY)] == ["SUCCESS", "CANCELED"]
    assert today.statuses(TODAY) == {**DEGRADED, "daily_report": "pending"}
    assert "interrupted" in today.reason("detail_pages", TODAY)


class TestAfterTheFirstThatFollows:
    """Search is launched; the details that follow fail, and the report would be next."""

    @pytest.fixture
    def launch(
        self, today: InProcess, monkeypatch: pytest.MonkeyPatch
    ) -> Callable[[Callable[[str, str], object]], str]:
        """Launch search, do something when details have failed, and give how the Dagster run ended."""
        today.tell("detail_pages", TODAY, then="fail")
        execute = execute_here

        def launched(then: Callable[[str, str], object]) -> str:
            def execute_then(*args: Any, **options: Any) -> object:
                done = execute(*args, **options)
                then(options["tags"][GOES_ON_FROM], options["dagster_run_id"])
                return done

            monkeypatch.setattr(carrying_on, "execute_here", execute_then)
            return today.dagster_run(today.launch(TODAY, "search_results").run_id).status.value

        return launched

    def test_the_report_follows(self, today: InProcess, launch: Callable[..., str]) -> None:
        assert launch(lambda *_: None) == "SUCCESS"
        assert today.requested_by(TODAY) == ["a person", "carry_on_executor", "carry_on_executor"]
        assert today.statuses(TODAY) == DEGRADED

    def test_it_follows_a_launch_that_held_it_up_though_that_was_refused(
        self, today: InProcess, launch: Callable[..., str]
    ) -> None:
        waiting: list[dg.DagsterRun] = []

        def queue(*_: str) -> None:
            if not waiting:
                job = today.defs.resolve_job_def("details_job")
                waiting.append(today.instance.create_run_for_job(job, tags={"dagster/partition": TODAY}))

        launch(queue)
        assert today.statuses(TODAY)["daily_report"] == "pending"
        assert _carried_on(today, waiting[0]) == [waiting[0].run_id]
        assert today.statuses(TODAY) == DEGRADED

    def test_it_does_not_after_an_interrupt_that_dagster_made_nothing_of(
        self, today: InProcess, launch: Callable[..., str]
    ) -> None:
        def cancel(own: str, _following: str) -> None:
            today.instance.report_run_canceling(today.dagster_run(own))
            os.kill(os.getpid(), signal.SIGTERM)

        assert launch(cancel) == "CANCELED"
        assert today.statuses(TODAY)["daily_report"] == "pending"

    def test_it_does_not_once_somebody_marked_the_first_as_cancelled(
        self, today: InProcess, launch: Callable[..., str]
    ) -> None:
        def force(own: str, _following: str) -> None:
            today.instance.report_run_canceled(today.dagster_run(own))

        launch(force)
        assert today.statuses(TODAY)["daily_report"] == "pending"

    def test_it_does_not_when_the_database_went_away(
        self, today: InProcess, launch: Callable[..., str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def leave(*_: object) -> None:
            monkeypatch.setattr(carrying_on, "decide", _away)

        assert launch(leave) == "SUCCESS"
        assert today.settle() == [(TODAY, ("daily_report",))]


def _away(*_: object) -> object:
    raise StoreUnavailableError("the server restarts")


def test_a_dagster_run_that_starts_nothing_is_not_tried_again(
    today: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    today.instance.add_dynamic_partitions(RUN_ID, ["tomorrow"])
    tried: list[str] = []
    execute = execute_here

    def broken(job: dg.JobDefinition, instance: dg.DagsterInstance, run_id: str, *args: Any, **options: Any) -> object:
        tried.append(run_id)
        assert len(tried) == 1, "tried again"
        return execute(job, instance, "tomorrow", *args, **options)

    today.tell("detail_pages", TODAY, then="fail")
    monkeypatch.setattr(carrying_on, "execute_here", broken)
    today.launch(TODAY)
    assert tried == [TODAY]
    assert today.statuses(TODAY) == {**DEGRADED, "daily_report": "pending"}
