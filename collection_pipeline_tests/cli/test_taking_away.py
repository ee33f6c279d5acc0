"""`collect retract` and `collect prune`: listed first, done on confirmation, and never more than was listed."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from collection_pipeline.engine.store import Store
from collection_pipeline_tests.cli.conftest import Collected

pytestmark = pytest.mark.xdist_group("collected")

RETRACT = ("retract", "detail_pages", "2026-11-29", "--reason", "wrong city")
WITHDRAWN = ["detail_pages", "news_mentions", "daily_report"]


def test_a_retraction_is_listed_and_asked_for_first(collected: Collected) -> None:
    listed = collected.desk.collect(*RETRACT[:3], "--dry-run")
    assert listed.code == 0
    assert {f"would be withdrawn: {job} of 2026-11-29, version 1" for job in WITHDRAWN} <= set(listed.out.splitlines())
    unasked = collected.desk.collect(*RETRACT)
    assert (unasked.code, unasked.out) == (2, "")
    assert "repeat the command with --yes" in unasked.err
    unsaid = collected.desk.collect(*RETRACT[:3], "--yes")
    assert (unsaid.code, unsaid.out) == (2, "")
    assert unsaid.err.startswith("Say with --reason")
    assert collected.desk.collect("status", "--json").json["settled"] is True


def test_a_retraction_withdraws_all_that_was_built_on_it_and_says_what_follows(
    collected: Collected, tmp_path: Path
) -> None:
    desk = collected.desk.copy(tmp_path / "desk")
    done, loaded = desk.collect_afresh(*RETRACT, "--yes", "--json")
    assert done.code == 0
    withdrawn = {each["job_id"] for each in done.json["withdrawn"]}
    assert set(WITHDRAWN) <= withdrawn
    assert done.json["standing"] == []
    assert {each["job_id"] for each in done.json["decided_anew"]} == withdrawn
    assert done.err.splitlines()[1:] == ["  collect rerun detail_pages 2026-11-29"]
    assert "dagster" not in loaded
    jobs = desk.collect("status", "--json").jobs
    assert {job_id for job_id, job in jobs.items() if job["version"] is not None} == {"search_results"}
    assert "wrong city" in jobs["detail_pages"]["reason"]
    again = desk.collect("run", "2026-11-29")
    assert again.code == 1
    assert "Waiting for" not in again.err, "nobody else works"


def test_a_retraction_says_what_it_withdrew_though_one_of_the_runs_cannot_be_read(
    collected: Collected, tmp_path: Path
) -> None:
    desk = collected.desk.copy(tmp_path / "desk")
    desk.collect("run", "2026-11-30", COLLECTION_EMULATOR_FAULTS="maps_detail=out_of_credits")
    with Store.open(desk.database_url) as store, store.database.write() as connection:
        connection.exec_driver_sql("UPDATE runs SET timezone = 'Mars/Olympus' WHERE run_id = '2026-11-30'")
    done = desk.collect(*RETRACT, "--yes")
    assert done.code == 0
    assert {f"withdrawn: {job} of 2026-11-29, version 1" for job in WITHDRAWN} <= set(done.out.splitlines())
    assert "withdrawn: daily_report of 2026-11-30, version 1" in done.out.splitlines()
    assert "What is decided now in run 2026-11-30 cannot be shown. Run 2026-11-30 was opened in the" in done.err


def test_a_version_that_there_is_not_cannot_be_retracted(collected: Collected) -> None:
    done = collected.desk.collect(*RETRACT, "--version", "7", "--yes")
    assert (done.code, done.out) == (2, "")
    assert "has no version 7 that could be retracted" in done.err


def test_pruning_removes_rows_files_and_partition_together_and_nothing_of_the_folder_it_was_copied_from(
    collected: Collected, tmp_path: Path
) -> None:
    original = collected.desk.copy(tmp_path / "original")
    old = original.collect("run", "2020-01-01")
    assert old.code == 0, old.err
    desk = original.copy(tmp_path / "desk")
    here, there = (each.folder / "data" / "reports" / "2020-01-01" for each in (desk, original))
    assert f"daily_report: {here / 'daily_report' / 'v1' / 'report.html'} " in desk.collect("status", "2020-01-01").out
    files = sorted(there.rglob("*"))
    prune = ("prune", "--keep-days", "365")
    assert desk.collect(*prune, "--dry-run").out == "would go: 2020-01-01\n"
    unasked = desk.collect(*prune)
    assert (unasked.code, unasked.out) == (2, "")
    assert here.exists()

    done = desk.collect(*prune, "--yes", "--json")
    assert (done.code, done.json) == (0, {"dry_run": False, "runs": ["2020-01-01"]})
    assert not here.exists()
    assert sorted(there.rglob("*")) == files
    assert desk.collect("status", "2020-01-01").code == 2
    with dg.DagsterInstance.from_config(str(desk.folder / "data" / "dagster")) as instance:
        assert instance.get_dynamic_partitions("run_id") == ["2026-11-29"]
    assert desk.collect("status", "2026-11-29").code == 0
    nothing = desk.collect(*prune, "--yes")
    assert (nothing.code, nothing.out) == (0, "")
