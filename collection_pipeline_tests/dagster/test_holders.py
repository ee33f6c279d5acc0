"""Who holds a job: until when it is theirs, what can be known about them, and how it is taken from them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import dagster as dg
import psutil
import pytest

from collection_pipeline.engine.holders import Holder, process_is_gone, this_process
from collection_pipeline.engine.runs.launches import (
    PARTITION,
    PROCESS,
    REQUESTED_BY,
    WORKER,
    end_unwatched,
    is_out_of_sight,
    is_over,
    live_runs,
    name_worker,
)
from collection_pipeline.engine.runs.releasing import release_abandoned
from collection_pipeline.engine.store import Attempt
from collection_pipeline_tests.dagster.in_process import InProcess, failures

TODAY = "2026-03-03"


@pytest.fixture
def opened(world: InProcess) -> InProcess:
    world.open(TODAY)
    return world


@pytest.fixture
def dagster_run(opened: InProcess) -> dg.DagsterRun:
    """A Dagster run under way."""
    details = opened.defs.resolve_job_def("details_job")
    return opened.instance.create_run_for_job(details, status=dg.DagsterRunStatus.STARTED)


@pytest.fixture
def other_process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def held(world: InProcess, holder: Holder) -> Attempt:
    """The search, claimed."""
    return world.store.claim(
        TODAY,
        "search_results",
        holder,
        world.collection.graph,
        source=world.collection.source_label,
        decide=lambda _: {},
        is_over=lambda _: False,
        now=world.script.now,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the clock is set in a /proc of our own")
def test_setting_the_clock_makes_no_live_process_look_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host, pid, started = this_process()
    shown = Path("/proc/stat").read_text()
    booted = int(psutil.boot_time())
    (tmp_path / "stat").write_text(shown.replace(f"btime {booted}", f"btime {booted + 3600}"))
    (tmp_path / str(pid)).symlink_to(f"/proc/{pid}")
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))

    assert psutil.boot_time() == booted + 3600
    assert not process_is_gone(Holder("a run", host, pid, started))


def test_a_process_that_ended_is_gone_and_so_is_one_whose_pid_is_used_again() -> None:
    host, _, started = this_process()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert process_is_gone(Holder("a run", host, ended.pid, started))
    assert process_is_gone(Holder("a run", host, os.getpid(), started - 1.0))
    assert not process_is_gone(Holder("a run", "another host", ended.pid, started))


def test_a_process_that_ended_and_that_nobody_waited_for_is_gone() -> None:
    host, ended = this_process()[0], subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = psutil.Process(ended.pid).create_time() - psutil.boot_time()
    assert not process_is_gone(Holder("a run", host, ended.pid, started))
    ended.kill()
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is left as it is

    assert psutil.Process(ended.pid).status() == psutil.STATUS_ZOMBIE
    assert process_is_gone(Holder("a run", host, ended.pid, started))
    with ended:  # wait for it and close its input
        pass


@pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="pids have no namespaces here")
def test_containers_that_share_a_host_name_say_nothing_of_each_others_processes() -> None:
    host, _, started = this_process()
    name, _, namespace = host.partition("/")
    assert name == socket.gethostname()
    assert str(Path("/proc/self/ns/pid").readlink()) == f"pid:[{namespace}]"
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    neighbour = Holder("a run", f"{name}/4026530000", ended.pid, started)
    assert not process_is_gone(neighbour)
    assert str(neighbour) == f"Dagster run a run (process {ended.pid} on {name})"
    assert process_is_gone(replace(neighbour, host=host))


@pytest.mark.parametrize(("host", "out_of_sight"), [(this_process()[0], False), ("here/4026530000", True)])
def test_a_run_that_a_process_elsewhere_executes_itself_is_out_of_sight_until_somebody_says_that_it_is_gone(
    opened: InProcess, host: str, out_of_sight: bool
) -> None:
    _, pid, started = this_process()
    run = opened.instance.create_run_for_job(
        opened.defs.resolve_job_def("details_job"),
        tags={PARTITION: TODAY, PROCESS: f"{host}:{pid}:{started}"},
        status=dg.DagsterRunStatus.STARTED,
    )
    between_tries = Holder(run.run_id, host, None, None)
    assert is_out_of_sight(opened.instance, replace(between_tries, pid=pid, process_started_at=started)) == out_of_sight
    assert is_out_of_sight(opened.instance, between_tries) == out_of_sight
    assert TODAY in live_runs(opened.instance, opened.collection.graph)

    end_unwatched(opened.instance, run.run_id)
    assert live_runs(opened.instance, opened.collection.graph) == {}


def test_a_run_that_a_launcher_watches_is_left_to_it(opened: InProcess, dagster_run: dg.DagsterRun) -> None:
    end_unwatched(opened.instance, dagster_run.run_id)
    left = opened.instance.get_run_by_id(dagster_run.run_id)
    assert left is not None
    assert left.status is dg.DagsterRunStatus.STARTED
    assert not is_out_of_sight(opened.instance, Holder(dagster_run.run_id, "another host", 1, 0.0))


def test_between_two_tries_only_the_end_of_the_dagster_run_ends_the_attempt(
    opened: InProcess, dagster_run: dg.DagsterRun, other_process: subprocess.Popen[bytes]
) -> None:
    process = psutil.Process(other_process.pid)
    host, name = this_process()[0], socket.gethostname()
    attempt = held(opened, Holder(dagster_run.run_id, host, process.pid, process.create_time() - psutil.boot_time()))
    opened.store.await_retry(attempt)
    other_process.kill()
    other_process.wait()

    release_abandoned(opened.collection, is_over=partial(is_over, opened.instance))
    assert opened.statuses(TODAY)["search_results"] == "running"
    again = held(opened, Holder(dagster_run.run_id, *this_process()))
    assert again.number == attempt.number

    opened.store.await_retry(again)
    opened.instance.report_run_failed(dagster_run)
    release_abandoned(opened.collection, is_over=partial(is_over, opened.instance))
    assert opened.statuses(TODAY)["search_results"] == "failed"
    assert f"Dagster run {dagster_run.run_id} (about to try again on {name})" in opened.reason("search_results", TODAY)


def test_a_failed_try_lets_go_of_its_process_before_the_next(
    opened: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    between: list[Holder | None] = []
    claim = opened.store.claim

    def watched(*args: object, **options: object) -> Attempt:
        between.append(opened.job("search_results", TODAY).holder)
        return claim(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(opened.store, "claim", watched)
    opened.tell("search_results", TODAY, then="try again later")
    launched = opened.launch(TODAY, "search_results")
    first, second = between
    assert first is None
    assert second == Holder(launched.run_id, this_process()[0], None, None)
    assert opened.statuses(TODAY)["search_results"] == "done"


def test_a_dagster_run_that_nobody_knows_holds_its_job_while_its_process_lives(opened: InProcess) -> None:
    here = Holder("deleted", *this_process())
    held(opened, here)
    assert not is_over(opened.instance, here)
    (told,) = failures(opened.launch(TODAY, "search_results"))
    assert f"already running: {here} holds it" in told
    assert "--take-over" not in told


@pytest.mark.parametrize("between_tries", [False, True])
def test_who_meets_a_holder_that_nothing_can_be_known_about_is_told_the_way_out(
    opened: InProcess, between_tries: bool
) -> None:
    elsewhere = replace(Holder("of another instance", *this_process()), host="another host")
    attempt = held(opened, elsewhere)
    if between_tries:
        opened.store.await_retry(attempt)
    (told,) = failures(opened.launch(TODAY, "search_results"))
    assert "Dagster run of another instance" in told
    assert f"type: collect rerun search_results {TODAY} --take-over" in told


def test_an_automatic_launch_of_a_job_that_a_settled_run_does_not_have_finds_nothing_to_do(world: InProcess) -> None:
    world.morning(TODAY)
    graph = world.store.graph_of(TODAY)
    launched = world.with_summary().launch(TODAY, "summary", tags={REQUESTED_BY: "daily_schedule"})
    assert launched.success
    assert world.store.graph_of(TODAY).to_json() == graph.to_json()


def test_of_two_launches_at_once_the_one_that_waited_for_its_turn_buys_nothing_again(opened: InProcess) -> None:
    opened.script.set_clock(datetime.now(UTC))
    opened.launch(TODAY, "search_results")
    assert opened.launch(TODAY, "search_results").success, "who asks afterwards gets a further version"

    opened.script.set_clock(datetime.now(UTC) + timedelta(hours=1))  # done after what follows was asked for
    made = opened.launch(TODAY, "search_results")
    (told,) = failures(opened.launch(TODAY, "search_results"))
    assert f"was made by Dagster run {made.run_id} while this launch waited" in told
    assert opened.current("search_results", TODAY).version == 3


def test_a_worker_is_named_so_that_its_end_is_noticed_when_all_of_dagster_was_killed_with_it(opened: InProcess) -> None:
    launched = opened.instance.create_run_for_job(
        opened.defs.resolve_job_def("collection_job"), tags={PARTITION: TODAY}, status=dg.DagsterRunStatus.STARTED
    )
    name_worker(opened.instance, launched, "in_process")
    host, pid, started = this_process()
    tagged = opened.instance.get_run_by_id(launched.run_id)
    assert tagged is not None
    assert tagged.tags[WORKER] == f"{host}:{pid}:{started}"
    (alive,) = live_runs(opened.instance, opened.collection.graph)[TODAY]
    assert alive.dagster_run_id == launched.run_id

    left = opened.instance.create_run_for_job(
        opened.defs.resolve_job_def("collection_job"),
        tags={PARTITION: TODAY, WORKER: f"{host}:{pid}:{started - 1}"},
        status=dg.DagsterRunStatus.STARTED,
    )
    assert live_runs(opened.instance, opened.collection.graph)[TODAY] == [alive]
    ended = opened.instance.get_run_by_id(left.run_id)
    assert ended is not None
    assert ended.status is dg.DagsterRunStatus.FAILURE
