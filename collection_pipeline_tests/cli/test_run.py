"""`collect run`: from nothing to settled, from a failure to its repair, job by job, interrupted, and beside others."""

from __future__ import annotations

import os
import pty
import re
import signal
import sqlite3
import uuid
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import dagster as dg
import pytest

from collection_pipeline.definitions import defs
from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.engine.runs.launches import PARTITION, PROCESS
from collection_pipeline.engine.store import Store
from collection_pipeline_tests.cli import crafted
from collection_pipeline_tests.cli.conftest import Collected
from collection_pipeline_tests.cli.desk import Desk

pytestmark = pytest.mark.xdist_group("collected")  # one whole run for all of them

JOBS = ["search_results", "detail_pages", "news_mentions", "daily_report"]
ERASED = r"\r\x1b\[2K"
"""How a terminal is told to draw a bar anew: while a job runs, its bar is alive."""

DETAILS_DOWN = {"COLLECTION_EMULATOR_FAULTS": "maps_detail=unauthorized"}


def test_a_first_run_collects_everything_and_shows_where_the_report_is(collected: Collected) -> None:
    done = collected.done
    assert done.code == 0, done.err
    days = {day.isoformat() for day in collected.days}
    said = {" (today)" if day == "2026-11-29" else f", collected on {day}" for day in days}
    assert done.out.splitlines()[0] in {f"Run 2026-11-29: settled; data as of 2026-11-29{when}" for when in said}
    found = re.search(r"^daily_report: (.*\.html) \(beside it: .*\)$", done.out, re.MULTILINE)
    assert found is not None
    assert "<html" in Path(found[1]).read_text("utf-8")


def test_progress_off_a_terminal_is_a_line_for_each_start_and_end(collected: Collected) -> None:
    first, *lines = collected.done.err.splitlines()
    assert first == "Run 2026-11-29; source: emulator (synthetic)"
    told = [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in lines]
    ends = [line for line in told if not line.endswith(" started")]
    assert set(JOBS) <= {line.split(" done: ")[0] for line in ends}
    assert ends[0] == "search_results done: 2 rows, version 1, 2 credits"
    assert not [line for line in told if "DEBUG" in line or "dagster" in line.lower()]


def test_a_second_run_is_instant_and_says_how_to_collect_again(collected: Collected) -> None:
    again, loaded = collected.desk.collect_afresh("run", "2026-11-29", "--json")
    assert again.code == 0
    assert not loaded & {"dagster", "pandas", "pyarrow"}
    assert "Run 2026-11-29 is settled, so there was nothing to do." in again.err
    assert "  collect run 2026-11-29.2  (a further collection)" in again.err.splitlines()
    assert "  collect rerun search_results 2026-11-29  (anew, in this run)" in again.err.splitlines()
    assert again.json == collected.desk.collect("status", "2026-11-29", "--json").json


def test_status_reads_the_finished_run_without_dagster(collected: Collected) -> None:
    done, loaded = collected.desk.collect_afresh("status", "--json")
    assert not loaded & {"dagster", "pandas", "pyarrow"}
    run = done.json
    assert {key: value for key, value in run.items() if key != "jobs"} == {
        "run_id": "2026-11-29",
        "as_of": "2026-11-29T00:00:00+00:00",
        "settled": True,
        "credits_charged": 8,
        "credits_reused": 0,
    }
    assert [(done.jobs[job]["status"], done.jobs[job]["version"]) for job in JOBS] == [("done", 1)] * 4


def test_the_run_shows_up_in_dagster(collected: Collected) -> None:
    with dg.DagsterInstance.from_config(str(collected.desk.folder / "data" / "dagster")) as instance:
        (run,) = instance.get_runs()
        assert run.status is dg.DagsterRunStatus.SUCCESS
        assert run.tags["dagster/partition"] == "2026-11-29"
        assert run.tags["collection/requested_by"] == "collect run"
        assert instance.get_dynamic_partitions("run_id") == ["2026-11-29"]
        assert instance.telemetry_enabled is False


def test_a_rerun_can_be_previewed_with_its_cost(collected: Collected) -> None:
    done = collected.desk.collect("rerun", "detail_pages", "2026-11-29", "--dry-run")
    assert (done.code, done.err) == (0, "")
    *edges, runs, basis = done.out.splitlines()
    assert {
        "detail_pages → news_mentions: follows",
        "detail_pages → daily_report: follows",
        "news_mentions → daily_report: follows",
    } <= set(edges)
    assert re.match(r"Runs detail_pages, .*daily_report.*; about 6 API credits\.", runs)
    assert basis == "The cost is what these jobs last took."
    answer = collected.desk.collect("rerun", "detail_pages", "2026-11-29", "--dry-run", "--json").json
    assert {"detail_pages", "news_mentions", "daily_report"} <= set(answer["runs"])
    assert answer["credits"] == 6
    assert answer["not_counted"] == []
    assert collected.desk.collect("status", "--json").json["credits_charged"] == 8


def test_a_job_that_never_delivered_costs_what_it_cost_before_or_is_not_counted(
    collected: Collected, tmp_path: Path
) -> None:
    desk = collected.desk.copy(tmp_path / "desk")
    desk.collect("run", "2026-11-30", "--only", "search_results")
    later = desk.collect("rerun", "detail_pages", "2026-11-30", "--dry-run")
    assert re.search(r"^Runs detail_pages, .*daily_report.*; about 6 API credits\.$", later.out, re.MULTILINE)
    desk.collect("run", "2026-11-28", "--only", "search_results")
    first = desk.collect("rerun", "detail_pages", "2026-11-28", "--dry-run")
    assert re.search(r"; at least 0 API credits; not counted: detail_pages, .*daily_report", first.out)


def test_a_job_that_the_graph_gained_after_the_run_can_be_rerun_in_it(collected: Collected, tmp_path: Path) -> None:
    desk = collected.desk.copy(tmp_path / "desk")
    with Store.open(desk.database_url) as store:
        store.reopen("2026-11-29")
        graph = store.graph_of("2026-11-29")
        store.adopt_graph("2026-11-29", Graph.build(job for job in graph if job.job_id != "daily_report"))
    with closing(sqlite3.connect(desk.folder / "data" / "collection.db")) as connection, connection:
        connection.execute("DELETE FROM jobs WHERE job_id = 'daily_report'")
        connection.execute("UPDATE runs SET settled_at = opened_at")

    done = desk.collect("rerun", "daily_report", "2026-11-29", "--json")
    assert done.code == 0, done.err
    assert done.jobs["daily_report"]["status"] == "done"


def test_a_day_without_details_degrades_and_its_repair_makes_it_whole(collected: Collected, tmp_path: Path) -> None:
    desk = collected.desk.copy(tmp_path / "desk")
    bad = desk.collect("run", "2026-11-30", "--json", **DETAILS_DOWN)
    assert bad.code == 1
    jobs = bad.jobs
    assert [jobs[job]["status"] for job in JOBS] == ["done", "failed", "skipped", "done"]
    assert jobs["daily_report"]["degraded"] is True
    assert jobs["daily_report"]["as_of"] == bad.json["as_of"] == "2026-11-29T00:00:00+00:00"
    assert jobs["detail_pages"]["next_command"] == "collect rerun detail_pages 2026-11-30"
    told = [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in bad.err.splitlines()]
    (failed,) = [line for line in told if line.startswith("detail_pages failed: ")]
    reason = failed.removeprefix("detail_pages failed: ")
    assert "news_mentions skipped" in told
    assert {line.partition(" of 2026")[0] for line in told if reason in line} == {failed, "warning: detail_pages"}
    assert "daily_report done: 2 rows, version 1, 0 credits, degraded: data as of 2026-11-29 00:00" in told

    again = desk.collect("run", "2026-11-30", "--json")
    assert (again.code, again.json) == (1, bad.json)

    repaired = desk.collect("rerun", "detail_pages", "2026-11-30", "--json")
    assert repaired.code == 0, repaired.err
    jobs = repaired.jobs
    assert [jobs[job]["status"] for job in JOBS] == ["done"] * 4
    assert (jobs["daily_report"]["version"], jobs["daily_report"]["degraded"]) == (2, False)
    assert repaired.json["as_of"] == "2026-11-30T00:00:00+00:00"


def test_a_job_whose_holder_nobody_can_see_is_taken_over_when_somebody_says_so(
    collected: Collected, tmp_path: Path
) -> None:
    desk = collected.desk.copy(tmp_path / "desk")
    elsewhere = replace(crafted.ALIVE, dagster_run_id=str(uuid.uuid4()), host="another host")
    tags = {PARTITION: "2026-11-29", PROCESS: f"{elsewhere.host}:{elsewhere.pid}:{elsewhere.process_started_at}"}
    with dg.DagsterInstance.from_config(str(desk.folder / "data" / "dagster")) as instance:
        # It was to go on with the details, and no launcher says that it will not.
        instance.create_run_for_job(
            defs.resolve_job_def("collection_job"),
            run_id=elsewhere.dagster_run_id,
            status=dg.DagsterRunStatus.STARTED,
            tags=tags,
            asset_selection=frozenset(dg.AssetKey(job) for job in JOBS),
        )
    with Store.open(desk.database_url) as store:
        crafted.start(store, "search_results", holder=elsewhere)

    refused = desk.collect("rerun", "search_results", "2026-11-29")
    assert refused.code == 1
    assert f"already running: {elsewhere} holds it" in refused.err
    assert "collect rerun search_results 2026-11-29 --take-over" in refused.err

    taken = desk.collect(
        "rerun", "search_results", "2026-11-29", "--take-over", "--json", COLLECTION_TIMEZONE="Asia/Shanghai"
    )
    assert taken.code == 0, taken.err
    # In the zone of the run, whatever that of the settings is by now.
    assert f"Took search_results from {elsewhere}, which held it since 2026-11-29 06:00:00." in taken.err
    assert {job["status"] for job in taken.json["jobs"]} == {"done"}


def test_job_by_job_each_is_refused_until_its_upstream_is_there_and_never_paid_for_twice(desk: Desk) -> None:
    early = desk.collect("run", "2026-11-29", "--only", "detail_pages", "--json")
    assert early.code == 1
    assert "detail_pages of 2026-11-29 has to wait: search_results has not run yet" in early.err
    assert "type: collect run 2026-11-29 --only search_results. The run was not opened." in early.err
    assert "There is no run yet." in desk.collect("status").err

    assert desk.collect("run", "2026-11-29", "--only", "search_results").code == 0
    again = desk.collect("run", "2026-11-29", "--only", "search_results", "--json")
    assert again.code == 0
    assert "search_results of 2026-11-29 is done already, and nothing that it reads has changed." in again.err
    assert again.json["credits_charged"] == 2
    assert [again.jobs[job]["status"] for job in JOBS] == ["done", "pending", "pending", "pending"]


def test_a_run_ahead_of_its_day_is_a_rehearsal_and_its_report_says_when_it_was_collected(desk: Desk) -> None:
    rehearsed = desk.collect("run", "2999-01-01")
    assert rehearsed.code == 0
    assert "The day of this run has not begun. On that day it will be found collected already." in rehearsed.err
    assert re.match(r"Run 2999-01-01: settled; data as of 2999-01-01, collected on 2\d{3}-\d\d-\d\d\n", rehearsed.out)


def test_of_two_at_once_the_second_is_told_who_holds_the_job_and_buys_nothing(desk: Desk) -> None:
    only_search = ("run", "2026-11-29", "--only", "search_results")
    with desk.start(*only_search, environment={"COLLECTION_EMULATOR_FAULTS": "maps_search=slow@seconds=8"}) as first:
        assert first.stderr is not None
        assert any("search_results started" in line for line in first.stderr)
        rerun = desk.collect("rerun", "search_results", "2026-11-29", "--take-over")
        second = desk.collect(*only_search)
        first.communicate(timeout=120)
    assert rerun.code == 1
    assert "search_results of run 2026-11-29 is already running: Dagster run" in rerun.err
    assert "--take-over changed nothing" in rerun.err
    assert second.code == 1
    assert "search_results of run 2026-11-29 is already running: Dagster run" in second.err
    told = desk.collect("status", "--json")
    assert (told.json["credits_charged"], told.jobs["search_results"]["version"]) == (2, 1)


def test_ctrl_c_ends_the_job_says_what_is_kept_and_the_same_command_goes_on(desk: Desk) -> None:
    slow = {"COLLECTION_EMULATOR_FAULTS": "maps_detail=slow@seconds=600"}
    terminal, its_end = pty.openpty()
    shown = ""
    with desk.start("run", "2026-11-29", environment=slow, stderr=its_end) as running:
        os.close(its_end)
        while not re.search(rf"detail_pages started.*{ERASED}.*{ERASED}", shown, re.DOTALL):
            shown += os.read(terminal, 65536).decode(errors="replace")
        running.send_signal(signal.SIGINT)
        for more in iter(partial(_read, terminal), b""):
            shown += more.decode(errors="replace")
        out, _ = running.communicate(timeout=120)
    os.close(terminal)
    assert (running.returncode, out) == (130, "")
    assert "Stopped. Run 2026-11-29 is kept as it is." in shown
    assert "What was paid for is kept: the next attempt buys only what is missing." in shown
    assert "Traceback" not in shown
    jobs = desk.collect("status", "--json").jobs
    assert (jobs["search_results"]["status"], jobs["detail_pages"]["status"]) == ("done", "failed")
    assert "(interrupted)" in jobs["detail_pages"]["reason"]
    assert jobs["detail_pages"]["next_command"] == "collect run 2026-11-29"

    resumed = desk.collect("run", "2026-11-29", "--json")
    assert resumed.code == 0, resumed.err
    assert {job["status"] for job in resumed.json["jobs"]} == {"done"}


def _read(terminal: int) -> bytes:
    """What a terminal shows next; nothing once all who write to it are gone, which Linux reports as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def test_it_waits_for_a_job_that_others_work_on_and_says_what_to_do_if_they_do_not(desk: Desk) -> None:
    elsewhere = replace(crafted.ALIVE, host="another host")
    with Store.open(desk.database_url) as store:
        crafted.open_run(store)
        attempt = crafted.start(store, "search_results", holder=elsewhere)
        with desk.start("run", "2026-11-29") as running:
            assert running.stderr is not None
            told = [running.stderr.readline()]
            while "Waiting for what others do" not in told[-1]:
                assert told[-1], "it ended without waiting"
                told.append(running.stderr.readline())
            assert "search_results running since 06:00 in Dagster run dagster-" in told[-1]
            assert f"{elsewhere} holds search_results.\n" in told
            way_out = "type: collect rerun search_results 2026-11-29 --take-over"
            assert f"Nothing can be known about it from here. If it is gone, {way_out}\n" in told
            store.fail(attempt, "out of credits", "out_of_credits", crafted.OPENED)
            out, _ = running.communicate(timeout=120)
    assert running.returncode == 1
    assert "failed at 06:00 (out of credits)" in out
