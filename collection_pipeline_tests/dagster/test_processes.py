"""The same policies with Dagster's real processes: daemon, code server, web server, queue and run workers.

One set of servers for all tests of this file; each test has months of its own.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from collection_pipeline.engine.run_ids import RunId
from collection_pipeline_tests.dagster.in_process import jobs_of
from collection_pipeline_tests.dagster.servers import Servers, ask, end, servers, start, wait_for

pytestmark = pytest.mark.xdist_group("dagster servers")

ALL_DONE = {"search_results": "done", "detail_pages": "done", "news_mentions": "done", "daily_report": "done"}

DEGRADED = {**ALL_DONE, "detail_pages": "failed", "news_mentions": "skipped"}


@pytest.fixture(scope="module")
def dagster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with servers(tmp_path_factory.mktemp("dagster")) as started:
        yield started


def opened(dagster: Servers, run_id: str) -> None:
    """Open a run as the schedule does, but leave it to the sensor to start it."""
    world = dagster.world
    dagster.add_partition(run_id)
    world.store.open_run(
        RunId.parse(run_id),
        RunId.parse(run_id).moment(world.collection.timezone),
        world.collection.graph,
        world.script.now(),
    )


def test_details_fail_faster_than_one_tick_and_the_report_degrades_by_itself(dagster: Servers) -> None:
    world = dagster.world
    dagster.materialize("2026-01-01")
    dagster.await_settled("2026-01-01")
    world.tell("detail_pages", "2026-01-02", then="fail")
    opened(dagster, "2026-01-02")

    dagster.await_settled("2026-01-02")
    assert world.statuses("2026-01-01") == ALL_DONE
    assert world.requested_by("2026-01-01") == ["a person"], "a normal day is one Dagster run"
    assert world.statuses("2026-01-02") == DEGRADED
    assert world.requested_by("2026-01-02") == ["propagation_sensor", "propagation_sensor"]
    assert dagster.stale_status("daily_report", "2026-01-01") == "FRESH"
    assert dagster.stale_status("daily_report", "2026-01-02") == "STALE", "the UI is not told that it is fresh"


def test_a_run_worker_is_killed_so_its_job_is_failed_and_the_report_degrades(dagster: Servers) -> None:
    world = dagster.world
    dagster.materialize("2026-02-01")
    dagster.await_settled("2026-02-01")
    world.tell("detail_pages", "2026-02-02", held=True)
    killed = dagster.materialize("2026-02-02")
    dagster.await_start("detail_pages", "2026-02-02")
    holder = world.job("detail_pages", "2026-02-02").holder
    assert holder is not None
    os.kill(holder.pid, signal.SIGKILL)

    dagster.await_settled("2026-02-02")
    assert world.statuses("2026-02-02") == DEGRADED
    assert f"{holder} ended without finishing it" in world.reason("detail_pages", "2026-02-02")
    assert dagster.await_finished(killed).status.value == "FAILURE"


def test_a_run_is_cancelled_so_its_job_is_failed_and_the_report_degrades(dagster: Servers) -> None:
    world = dagster.world
    dagster.materialize("2026-03-01")
    dagster.await_settled("2026-03-01")
    world.tell("detail_pages", "2026-03-02", held=True)
    cancelled = dagster.materialize("2026-03-02")
    dagster.await_start("detail_pages", "2026-03-02")
    dagster.cancel(cancelled)

    dagster.await_settled("2026-03-02")
    assert world.statuses("2026-03-02") == DEGRADED
    assert "interrupted" in world.reason("detail_pages", "2026-03-02")
    assert dagster.await_finished(cancelled).status.value == "CANCELED"


def test_a_person_and_the_sensor_launch_the_same_job_and_one_of_them_is_told_who_holds_it(dagster: Servers) -> None:
    world = dagster.world
    world.tell("search_results", "2026-04-01", held=True)
    opened(dagster, "2026-04-01")
    dagster.await_start("search_results", "2026-04-01")
    holder = world.job("search_results", "2026-04-01").holder
    by_hand = dagster.materialize("2026-04-01", "search_results")

    assert dagster.await_finished(by_hand).status.value == "FAILURE"
    assert f"already running: {holder} holds it" in dagster.failure(by_hand)
    world.script.release("search_results", "2026-04-01")
    dagster.await_settled("2026-04-01")
    assert world.statuses("2026-04-01") == ALL_DONE
    assert [world.script.starts(job, "2026-04-01") for job in ALL_DONE] == [1, 1, 1, 1]


def test_two_ticks_decide_the_same_and_every_job_runs_once(dagster: Servers) -> None:
    world = dagster.world
    dagster.stop("daemon")
    opened(dagster, "2026-05-01")
    (request,) = world.evaluate()
    dagster.start("daemon")
    wait_for(lambda: bool(world.dagster_runs("2026-05-01")), "the daemon's own tick", dagster.describe)
    late = dagster.materialize("2026-05-01", *jobs_of(request), **request.tags)

    dagster.await_settled("2026-05-01")
    assert world.statuses("2026-05-01") == ALL_DONE
    assert [world.script.starts(job, "2026-05-01") for job in ALL_DONE] == [1, 1, 1, 1]
    assert dagster.await_finished(late).status.value == "SUCCESS", "it found nothing to do"


def test_the_daemon_is_killed_while_a_job_fails_and_another_run_is_queued(dagster: Servers) -> None:
    world = dagster.world
    dagster.materialize("2026-06-01")
    dagster.await_settled("2026-06-01")
    world.tell("detail_pages", "2026-06-02", then="fail", held=True)
    failing = dagster.materialize("2026-06-02")
    dagster.await_start("detail_pages", "2026-06-02")
    dagster.stop("daemon", signal.SIGKILL)
    world.script.release("detail_pages", "2026-06-02")
    assert dagster.await_finished(failing).status.value == "FAILURE"
    opened(dagster, "2026-06-03")
    queued = dagster.materialize("2026-06-03")

    due = [(request.partition_key, jobs_of(request)) for request in world.evaluate()]
    assert due == [("2026-06-02", ("daily_report",))], "what is queued is not requested again"

    dagster.start("daemon")
    dagster.await_settled("2026-06-02", "2026-06-03")
    assert world.statuses("2026-06-02") == DEGRADED
    assert world.statuses("2026-06-03") == ALL_DONE
    assert [run.run_id for run in world.dagster_runs("2026-06-03")] == [queued]


def test_runs_that_never_start_are_tried_again_and_then_failed_until_the_code_loads_again(dagster: Servers) -> None:
    world = dagster.world
    dagster.materialize("2026-07-01")
    dagster.await_settled("2026-07-01")
    world.script.break_code(broken=True)
    opened(dagster, "2026-07-02")

    dagster.await_status("search_results", "2026-07-02", "failed")
    world.script.break_code(broken=False)
    assert "3 Dagster runs in a row ended before they started the job" in world.reason("search_results", "2026-07-02")
    assert world.script.starts("search_results", "2026-07-02") == 0
    dagster.await_settled("2026-07-02")
    assert world.statuses("2026-07-02")["daily_report"] == "done"
    assert world.current("daily_report", "2026-07-02").degraded

    dagster.materialize("2026-07-02", "search_results")
    dagster.await_settled("2026-07-02")
    assert world.statuses("2026-07-02") == ALL_DONE
    assert not world.current("daily_report", "2026-07-02").degraded


def test_a_backfill_of_twenty_runs_leaves_every_run_settled(dagster: Servers) -> None:
    world = dagster.world
    run_ids = [f"2026-09-{day:02}" for day in range(1, 21)]
    for run_id in run_ids:
        dagster.add_partition(run_id)
    world.tell("search_results", "2026-09-01", rows=0)
    world.tell("detail_pages", "2026-09-10", then="fail")
    world.tell("news_mentions", "2026-09-15", then="fail")
    dagster.backfill(run_ids)

    dagster.await_settled(*run_ids)
    odd = {run_id: world.statuses(run_id) for run_id in run_ids if world.statuses(run_id) != ALL_DONE}
    assert odd == {
        "2026-09-01": {**dict.fromkeys(ALL_DONE, "pending"), "search_results": "failed"},
        "2026-09-10": DEGRADED,
        "2026-09-15": {**ALL_DONE, "news_mentions": "failed"},
    }


def test_dagster_dev_is_started_again_and_the_history_is_still_there(dagster: Servers) -> None:
    world = dagster.world
    before = dagster.materialize("2026-10-01")
    dagster.await_settled("2026-10-01")
    for server in ("daemon", "web"):
        dagster.stop(server)
    # `dagster dev` starts web server and daemon itself.
    command = ["dagster", "dev", "-w", "workspace.yaml", "-h", "127.0.0.1", "-p", str(dagster.web_port)]
    development = start(command, dagster.folder, dagster.folder / "dev.log")
    try:
        wait_for(dagster.is_up, "dagster dev to answer", dagster.describe)
        found = ask(
            dagster.web_port, "query ($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }", id=before
        )
        assert found["runOrError"]["status"] == "SUCCESS"
        opened(dagster, "2026-10-02")
        dagster.await_settled("2026-10-02")
        assert world.statuses("2026-10-02") == ALL_DONE
    finally:
        end(development, signal.SIGINT)
