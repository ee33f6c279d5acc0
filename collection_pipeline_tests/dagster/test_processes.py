"""The same policies with Dagster's real processes: daemon, code server, web server, queue and run workers.

One set of servers for all tests of this file, for which yesterday was a good day and each has a run of its own today;
and one more for the backfill, which takes as long as half of the others.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from collection_pipeline_tests.dagster.in_process import jobs_of
from collection_pipeline_tests.dagster.servers import Servers, end, servers, start, wait_for

pytestmark = [pytest.mark.xdist_group("dagster servers"), pytest.mark.long]

ALL_DONE = {"search_results": "done", "detail_pages": "done", "news_mentions": "done", "daily_report": "done"}

DEGRADED = {**ALL_DONE, "detail_pages": "failed", "news_mentions": "skipped"}


YESTERDAY = "2026-03-02"


@pytest.fixture(scope="module")
def dagster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with servers(tmp_path_factory.mktemp("dagster")) as started:
        started.materialize(YESTERDAY)
        started.await_settled(YESTERDAY)
        assert started.world.statuses(YESTERDAY) == ALL_DONE
        assert started.world.requested_by(YESTERDAY) == ["a person"], "a normal day is one Dagster run"
        yield started


def test_details_fail_faster_than_one_tick_and_the_report_degrades_by_itself(dagster: Servers) -> None:
    world = dagster.world
    run_id = "2026-03-03T0601"
    world.tell("detail_pages", run_id, then="fail")
    world.open(run_id)

    dagster.await_settled(run_id)
    assert world.statuses(run_id) == DEGRADED
    assert "a person" not in world.requested_by(run_id)
    assert dagster.stale_status("daily_report", YESTERDAY) == "FRESH"
    assert dagster.stale_status("daily_report", run_id) == "STALE", "the UI is not told that it is fresh"


@pytest.mark.parametrize(
    ("run_id", "alone"),
    [("2026-03-03T0602", None), ("2026-03-03T0611", "search_results")],
    ids=["in a step", "carrying on"],
)
def test_a_run_worker_is_killed_so_its_job_is_failed_and_the_report_degrades(
    dagster: Servers, run_id: str, alone: str | None
) -> None:
    world = dagster.world
    killed = launch_until_details(dagster, run_id, alone)
    holder = world.job("detail_pages", run_id).holder
    assert holder is not None
    assert holder.pid is not None
    os.kill(holder.pid, signal.SIGKILL)

    dagster.await_settled(run_id)
    assert world.statuses(run_id) == DEGRADED
    assert f"{holder} ended without finishing it" in world.reason("detail_pages", run_id)
    ended = {dagster.await_finished(each).status.value for each in (killed, holder.dagster_run_id)}
    assert ended == {"FAILURE"}


@pytest.mark.parametrize(
    ("run_id", "alone"),
    [("2026-03-03T0603", None), ("2026-03-03T0610", "search_results")],
    ids=["in a step", "carrying on"],
)
def test_a_run_is_cancelled_so_its_job_is_failed_and_the_report_degrades(
    dagster: Servers, run_id: str, alone: str | None
) -> None:
    world = dagster.world
    cancelled = launch_until_details(dagster, run_id, alone)
    dagster.cancel(cancelled)

    dagster.await_settled(run_id)
    assert world.statuses(run_id) == DEGRADED
    assert "interrupted" in world.reason("detail_pages", run_id)
    assert dagster.await_finished(cancelled).status.value == "CANCELED"
    assert world.requested_by(run_id)[-1] == "propagation_sensor", "what a person ended, no worker goes on with"


def test_a_person_and_the_sensor_launch_the_same_job_and_one_of_them_is_told_who_holds_it(dagster: Servers) -> None:
    world = dagster.world
    run_id = "2026-03-03T0604"
    world.tell("search_results", run_id, held=True)
    world.open(run_id)
    dagster.await_start("search_results", run_id)
    holder = world.job("search_results", run_id).holder
    by_hand = dagster.materialize(run_id, "search_results")

    assert dagster.await_finished(by_hand).status.value == "FAILURE"
    assert f"already running: {holder} holds it" in dagster.failure(by_hand)
    world.script.release("search_results", run_id)
    dagster.await_settled(run_id)
    assert world.statuses(run_id) == ALL_DONE
    assert [world.script.starts(job, run_id) for job in ALL_DONE] == [1, 1, 1, 1]


def test_two_ticks_decide_the_same_and_every_job_runs_once(dagster: Servers) -> None:
    world = dagster.world
    run_id = "2026-03-03T0605"
    dagster.stop("daemon")
    world.open(run_id)
    (request,) = world.evaluate()
    dagster.start("daemon")
    wait_for(lambda: bool(world.dagster_runs(run_id)), "the daemon's own tick", dagster.describe)
    late = dagster.materialize(run_id, *jobs_of(request), **request.tags)

    dagster.await_settled(run_id)
    assert world.statuses(run_id) == ALL_DONE
    assert [world.script.starts(job, run_id) for job in ALL_DONE] == [1, 1, 1, 1]
    assert dagster.await_finished(late).status.value == "SUCCESS", "it found nothing to do"


def test_the_daemon_is_killed_while_a_job_fails_and_another_run_is_queued(dagster: Servers) -> None:
    world = dagster.world
    run_id = "2026-03-03T0606"
    other = "2026-03-03T0607"
    world.tell("detail_pages", run_id, then="fail", held=True)
    failing = dagster.materialize(run_id)
    dagster.await_start("detail_pages", run_id)
    dagster.stop("daemon", signal.SIGKILL)
    world.script.release("detail_pages", run_id)
    assert dagster.await_finished(failing).status.value == "FAILURE"
    assert world.statuses(run_id) == DEGRADED, "the report does not need the daemon"
    world.open(other)
    queued = dagster.materialize(other)
    assert world.evaluate() == [], "what is queued is not requested again"

    dagster.start("daemon")
    dagster.await_settled(other)
    assert world.statuses(other) == ALL_DONE
    assert [run.run_id for run in world.dagster_runs(other)] == [queued]


def test_runs_that_never_start_are_tried_again_and_then_failed_until_the_code_loads_again(dagster: Servers) -> None:
    world = dagster.world
    run_id = "2026-03-03T0608"
    world.script.break_code(broken=True)
    world.open(run_id)

    dagster.await_status("search_results", run_id, "failed")
    world.script.break_code(broken=False)
    assert "3 Dagster runs in a row ended before they started the job" in world.reason("search_results", run_id)
    assert world.script.starts("search_results", run_id) == 0
    dagster.await_settled(run_id)
    assert world.statuses(run_id)["daily_report"] == "done"
    assert world.current("daily_report", run_id).degraded

    dagster.materialize(run_id, "search_results")
    dagster.await_settled(run_id)
    assert world.statuses(run_id) == ALL_DONE
    assert not world.current("daily_report", run_id).degraded


@pytest.mark.xdist_group("dagster servers for a backfill")
def test_a_backfill_of_twenty_runs_leaves_every_run_settled(tmp_path: Path) -> None:
    run_ids = [f"2026-09-{day:02}" for day in range(1, 21)]
    with servers(tmp_path) as dagster:
        world = dagster.world
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
    run_id = "2026-03-03T0609"
    (before,) = world.dagster_runs(YESTERDAY)
    for server in ("daemon", "web"):
        dagster.stop(server)
    # `dagster dev` starts web server and daemon itself.
    command = ["dagster", "dev", "-w", "workspace.yaml", "-h", "127.0.0.1", "-p", str(dagster.web_port)]
    development = start(command, dagster.folder, dagster.folder / "dev.log")
    try:
        wait_for(dagster.is_up, "dagster dev to answer", dagster.describe)
        assert dagster.ask(STATUS, id=before.run_id)["runOrError"]["status"] == "SUCCESS"
        world.open(run_id)
        dagster.await_settled(run_id)
        assert world.statuses(run_id) == ALL_DONE
    finally:
        end(development, signal.SIGINT)


def launch_until_details(dagster: Servers, run_id: str, alone: str | None) -> str:
    """Launch a whole run, or one job of it alone, and wait until details are at work, held. The Dagster run's id.

    What a job makes due that was launched alone, its worker goes on with: without a daemon, no sensor is quicker.
    """
    world = dagster.world
    world.tell("detail_pages", run_id, held=True)
    if alone is None:
        dagster_run_id = dagster.materialize(run_id)
        dagster.await_start("detail_pages", run_id)
        return dagster_run_id
    world.tell(alone, run_id, held=True)
    dagster_run_id = dagster.materialize(run_id, alone)
    dagster.await_start(alone, run_id)
    dagster.stop("daemon", signal.SIGKILL)
    try:
        world.script.release(alone, run_id)
        dagster.await_start("detail_pages", run_id)
    finally:
        dagster.start("daemon")
    return dagster_run_id


STATUS = "query ($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"
