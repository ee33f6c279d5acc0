"""The Dagster instance behind `collect`: where its history is kept, and how its pools are waited for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psutil
import pytest

from collection_pipeline.cli import pools
from collection_pipeline.cli.group import Refusal
from collection_pipeline.cli.instance import open_instance
from collection_pipeline.definitions import GRAPH
from collection_pipeline.engine.runs.launches import PARTITION, PROCESS, live_runs, this_process

RELATIVE = "storage:\n  sqlite:\n    base_dir: data/dagster\ntelemetry:\n  enabled: false\n"


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
