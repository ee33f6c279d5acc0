"""The Dagster instance behind `collect`: where its history is kept, and how its pools are waited for."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psutil
import pytest

from collection_pipeline.cli.group import Failure, Refusal
from collection_pipeline.cli.instance import open_instance
from collection_pipeline.definitions import GRAPH
from collection_pipeline.engine.holders import this_process
from collection_pipeline.engine.runs import pools
from collection_pipeline.engine.runs.launches import PARTITION, PROCESS, live_runs

RELATIVE = "storage:\n  sqlite:\n    base_dir: data/dagster\ntelemetry:\n  enabled: false\n"

OPEN = """
import sys
from pathlib import Path
from collection_pipeline.cli.instance import open_instance
print("ready", flush=True)
sys.stdin.read()
with open_instance(Path(sys.argv[1])):
    pass
"""


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with open_instance(tmp_path / "home") as opened:
        yield opened


def test_a_new_home_sends_no_usage_data(instance: dg.DagsterInstance) -> None:
    assert instance.telemetry_enabled is False
    assert instance.nux_enabled is False


def test_relative_paths_count_from_the_home_wherever_collect_is_typed(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "checkout", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    (home / "dagster.yaml").write_text(RELATIVE, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(elsewhere)
        with open_instance(home) as opened:
            opened.add_dynamic_partitions("run_id", ["2026-11-29"])
    assert (home / "data" / "dagster").is_dir()
    assert not list(elsewhere.iterdir())
    assert (home / "dagster.yaml").read_text("utf-8") == RELATIVE


def test_a_home_that_cannot_be_used_is_wrong_configuration(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(Refusal, match=r"DAGSTER_HOME=.*taken cannot be used"), open_instance(tmp_path / "taken"):
        pass


def test_processes_that_create_a_home_at_the_same_moment_wait_for_each_other(tmp_path: Path) -> None:
    home = tmp_path / "home"
    command = [sys.executable, "-c", OPEN, str(home)]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(3)]
    for process in started:
        assert process.stdout is not None
        process.stdout.readline()
    for process in started:
        assert process.stdin is not None
        process.stdin.close()  # they begin together
    for process in started:
        with process:
            assert process.wait() == 0
    databases = {path.name: path for path in home.rglob("*.db")}
    assert {"runs.db", "index.db", "schedules.db"} <= databases.keys()
    for path in databases.values():
        with sqlite3.connect(path) as connection:
            assert len(connection.execute("SELECT version_num FROM alembic_version").fetchall()) == 1, path


def test_a_damaged_history_is_told_with_what_may_be_deleted(tmp_path: Path) -> None:
    with open_instance(tmp_path):
        pass
    with sqlite3.connect(tmp_path / "history" / "runs.db") as connection:
        connection.execute("INSERT INTO alembic_version VALUES ('ddcc6d7244c6')")
    told = r"history in DAGSTER_HOME=.* is damaged.*The collection .* is kept.*delete the folder that `base_dir`"
    with pytest.raises(Failure, match=told), open_instance(tmp_path):
        pass


def test_a_job_in_this_process_starts_no_others_for_ctrl_c_to_hit(instance: dg.DagsterInstance) -> None:
    children: list[psutil.Process] = []

    @dg.op
    def look() -> None:
        children.extend(psutil.Process().children())

    @dg.job
    def looking() -> None:
        look()

    before = psutil.Process().children()
    assert looking.execute_in_process(instance=instance).success
    assert children == before


def test_whoever_waits_for_a_place_in_a_pool_is_told_who_has_it(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "LOOK_EVERY_S", 0.01)
    storage = instance.event_log_storage
    storage.set_concurrency_slots("serpbase", 1)
    storage.claim_concurrency_slot("serpbase", "11111111-of-another", "detail_pages")
    storage.claim_concurrency_slot("serpbase", "mine", "search_results")
    told = threading.Event()
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        told.set()

    with pools.waits_told(instance, "mine", say):
        assert told.wait(30)
    assert lines == ["search_results waits for a place in the pool serpbase, which Dagster run 11111111 has."]


def test_a_dagster_run_only_waits_while_a_step_is_to_be_tried_again_and_no_other_is_at_work() -> None:
    @dg.op
    def first() -> None: ...

    @dg.op
    def second() -> None: ...

    @dg.job
    def both() -> None:
        first()
        second()

    def waits(*events: tuple[str, dg.DagsterEventType]) -> bool:
        with dg.DagsterInstance.ephemeral() as ephemeral:
            run = ephemeral.create_run_for_job(both)
            for step_key, event in events:
                ephemeral.report_dagster_event(dg.DagsterEvent(event.value, "both", step_key=step_key), run.run_id)
            return pools.is_waiting(ephemeral, run.run_id)

    again = ("first", dg.DagsterEventType.STEP_UP_FOR_RETRY)
    began = ("second", dg.DagsterEventType.STEP_START)
    assert waits(again)
    assert not waits(again, began)
    assert waits(again, began, ("second", dg.DagsterEventType.STEP_SKIPPED))
    assert not waits(began, ("second", dg.DagsterEventType.STEP_SKIPPED))


def test_a_look_at_the_pools_that_fails_costs_nothing_but_the_message(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pytest fails a test in which a thread ends with an exception that nobody caught."""
    looked = threading.Semaphore(0)

    def gone(*_: object) -> None:
        looked.release()
        raise AttributeError("get_concurrency_keys")

    monkeypatch.setattr(pools, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(instance.event_log_storage, "get_concurrency_keys", gone)
    lines: list[str] = []
    with pools.waits_told(instance, "mine", lines.append):
        assert looked.acquire(timeout=30)
        assert looked.acquire(timeout=30), "it looks again"
    assert lines == []


def test_a_killed_run_gives_its_places_back_when_the_next_command_looks(instance: dg.DagsterInstance) -> None:
    @dg.job
    def collection_job() -> None:
        """Stands for the real one."""

    killed = psutil.Popen(["true"])
    host, started = this_process()[0], killed.create_time()
    killed.wait()
    tags = {PARTITION: "2026-11-29", PROCESS: f"{host}:{killed.pid}:{started}"}
    run = instance.create_run_for_job(collection_job, tags=tags, status=dg.DagsterRunStatus.STARTED)
    storage = instance.event_log_storage
    storage.set_concurrency_slots("serpbase", 1)
    storage.claim_concurrency_slot("serpbase", run.run_id, "detail_pages")

    assert live_runs(instance, GRAPH) == {}
    assert storage.get_concurrency_info("serpbase").claimed_slots == []
    ended = instance.get_run_by_id(run.run_id)
    assert ended is not None
    assert ended.status is dg.DagsterRunStatus.FAILURE
