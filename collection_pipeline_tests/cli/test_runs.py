"""`collect runs` on runs made by hand: the newest runs, a line each."""

from __future__ import annotations

import sqlalchemy as sa

from collection_pipeline.engine.store import Store
from collection_pipeline_tests.cli import crafted
from collection_pipeline_tests.cli.desk import Desk
from collection_pipeline_tests.cli.test_quick_answers import HEAVY


def test_lists_the_newest_runs_newest_first_and_counts_each_job_once(desk: Desk) -> None:
    with Store.open(desk.database_url) as store:
        for run_id in ("2026-11-27", "2026-11-29", "2026-11-30", "2026-11-28"):
            crafted.open_run(store, run_id)
        crafted.fail(store, "search_results", "no connection", "2026-11-29")
        crafted.start(store, "search_results", "2026-11-30")

    done = desk.collect("runs", "--last", "3")
    assert done.code == 0
    assert [" ".join(line.split()) for line in done.out.splitlines()] == [
        "run state credits data jobs",
        "2026-11-30 open 0 1 running, 3 pending",
        "2026-11-29 settled 0 1 failed, 3 blocked",
        "2026-11-28 open 0 4 pending",
    ]


def test_a_run_that_cannot_be_read_hides_no_other(desk: Desk) -> None:
    with Store.open(desk.database_url) as store:
        for run_id in ("2026-11-28", "2026-11-29"):
            crafted.open_run(store, run_id)
        with store.database.write() as connection:
            connection.execute(sa.text("UPDATE runs SET timezone = 'Nowhere/Atall' WHERE run_id = '2026-11-29'"))
    done = desk.collect("runs", "--json")
    assert (done.code, [run["run_id"] for run in done.json]) == (0, ["2026-11-28"])
    assert "Run 2026-11-29 is left out." in done.err
    alone = desk.collect("status", "2026-11-29")
    assert (alone.code, alone.out) == (2, "")
    assert "Run 2026-11-29 was opened in the time zone Nowhere/Atall, which this host does not know." in alone.err


def test_gives_machines_what_status_gives_of_each_and_loads_no_dagster(desk: Desk) -> None:
    with Store.open(desk.database_url) as store:
        for run_id in ("2026-11-28", "2026-11-29"):
            crafted.open_run(store, run_id)
    done, loaded = desk.collect_afresh("runs", "--json")
    assert done.json == [desk.collect("status", run_id, "--json").json for run_id in ("2026-11-29", "2026-11-28")]
    assert not loaded & HEAVY


def test_of_no_run_says_how_to_begin_and_begins_no_database(desk: Desk) -> None:
    done = desk.collect("runs", "--json")
    assert (done.code, done.json) == (0, [])
    assert "There is no run yet. Begin with: collect run" in done.err
    assert not (desk.folder / "data").exists()
