"""Three ways to drive a collection, from a shell script to Dagster, decide alike on the same faults.

One: a script of commands and their exit codes. Two: a loop of twenty lines over the state table, without Dagster.
Three: Dagster with its sensor. The script runs the template's own jobs, the others the small collection's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from collection_pipeline.engine.holders import Holder
from collection_pipeline.engine.jobs.gate import gate
from collection_pipeline.engine.planning.planner import plan
from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.store import Attempt, Manifest
from collection_pipeline_tests.cli.desk import Desk, new_desk
from collection_pipeline_tests.dagster.in_process import InProcess
from collection_pipeline_tests.dagster.small_collection import rows

YESTERDAY, TODAY = "2026-03-02", "2026-03-03"

JOBS = ("search_results", "detail_pages", "news_mentions", "daily_report")


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong today, in the words of the emulator and of the script, and how the day ends.

    `exit_codes`: of `collect run --only`, job by job; `refusals`: what it says about jobs that may not run.
    """

    emulated: str
    job_id: str
    turn: dict[str, Any]
    statuses: tuple[str, ...]
    exit_codes: tuple[int, ...]
    refusals: tuple[str, ...]


FAULTS = {
    "search finds nothing": Fault(
        "maps_search=empty_result",
        "search_results",
        {"rows": 0},
        ("failed", "pending", "pending", "done"),
        (1, 1, 1, 0),
        (
            "detail_pages of {} is blocked: search_results failed",
            "news_mentions of {} is blocked: search_results failed",
        ),
    ),
    "details are down": Fault(
        "maps_detail=unauthorized",
        "detail_pages",
        {"then": "fail"},
        ("done", "failed", "skipped", "done"),
        (0, 1, 0, 0),
        (),
    ),
    "news is down": Fault(
        "news=unauthorized",
        "news_mentions",
        {"then": "fail"},
        ("done", "done", "failed", "done"),
        (0, 0, 1, 0),
        (),
    ),
}


@pytest.fixture(scope="module")
def yesterday(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A folder in which the template collected yesterday's run, by one command."""
    desk = new_desk(tmp_path_factory.mktemp("yesterday"))
    assert desk.collect("run", YESTERDAY).code == 0
    return desk


@pytest.mark.xdist_group("yesterday")
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_script_of_commands_decides_by_exit_codes(fault: Fault, yesterday: Desk) -> None:
    today = f"{TODAY}T06{list(FAULTS.values()).index(fault):02}"
    fault_of_today = {"COLLECTION_EMULATOR_FAULTS": fault.emulated}
    script = [yesterday.collect("run", today, "--only", job_id, **fault_of_today) for job_id in JOBS]
    assert tuple(done.code for done in script) == fault.exit_codes
    said = "".join(done.err for done in script)
    for refusal in fault.refusals:
        assert refusal.format(today) in said
    jobs = yesterday.collect("status", today, "--json").jobs
    assert tuple(jobs[job_id]["status"] for job_id in JOBS) == fault.statuses
    assert jobs["daily_report"]["degraded"] == (fault.job_id != "news_mentions")


@pytest.mark.xdist_group("yesterday")
def test_a_chain_in_a_shell_ends_at_the_first_job_that_fails(yesterday: Desk) -> None:
    today = f"{TODAY}T0700"
    chain = " && ".join(f"collect run {today} --only {job_id}" for job_id in JOBS)
    environ = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLLECTION_QUERIES": str(yesterday.folder / "queries.toml"),
        "COLLECTION_EMULATOR_FAULTS": FAULTS["search finds nothing"].emulated,
    }
    ended = subprocess.run(["sh", "-c", chain], cwd=yesterday.folder, env=environ, capture_output=True, check=False)
    assert ended.returncode == 1
    jobs = yesterday.collect("status", today, "--json").jobs
    assert [job_id for job_id, job in jobs.items() if job["started_at"] is not None] == ["search_results"]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_loop_over_the_state_table_decides_without_dagster(fault: Fault, world: InProcess) -> None:
    loop(world, YESTERDAY)
    loop(world, TODAY, fault)
    assert tuple(world.statuses(TODAY).values()) == fault.statuses
    assert world.current("daily_report", TODAY).degraded == (fault.job_id != "news_mentions")
    assert world.dagster_runs(TODAY) == []


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_dagster_decides(fault: Fault, world: InProcess) -> None:
    world.morning(YESTERDAY)
    world.tell(fault.job_id, TODAY, **fault.turn)
    world.morning(TODAY)
    assert tuple(world.statuses(TODAY).values()) == fault.statuses
    assert world.current("daily_report", TODAY).degraded == (fault.job_id != "news_mentions")


def loop(world: InProcess, run_id: str, fault: Fault | None = None) -> None:
    """Level two: look at the table, start what is due, until nothing is."""
    store, graph, now = world.store, world.collection.graph, world.collection.now()
    store.open_run(RunId.parse(run_id), world.collection.timezone, graph, now)
    while True:
        state = store.run_state(run_id, graph)
        decided = plan(graph, state, now)
        store.show_statuses(state, decided, now, {})
        due = [job_id for job_id, decision in decided.decisions.items() if decision.due]
        if not due and decided.settled:
            return
        for job_id in due:
            decide = gate(graph, job_id, automatic=True, now=now)
            me = Holder("the loop", "this host", os.getpid(), 0.0)
            attempt = store.claim(
                run_id, job_id, me, graph, source="a", decide=decide, is_over=lambda _: False, now=lambda: now
            )
            if fault is not None and fault.job_id == job_id:
                store.fail(attempt, "it went wrong", "test", now)
            else:
                work(world, attempt)


def work(world: InProcess, attempt: Attempt) -> None:
    """What a body and its checks come to, at level two."""
    found = rows(["0x0:0x1"], 1, attempt.job_id)
    dataset, now = world.collection.datasets[attempt.job_id], world.collection.now
    world.store.publish(attempt, dataset, [found], lambda _: (), manifest=lambda _: Manifest(), now=now)
