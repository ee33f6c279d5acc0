"""Wrong use and wrong configuration: exit code 2, words that say what would be right, and nothing written."""

from __future__ import annotations

import pytest

from collection_pipeline_tests.cli.desk import Desk


@pytest.mark.parametrize(
    ("command", "environment", "words"),
    [
        ("run 2026-11-31", {}, "no run_id: there is no such date or time. Write YYYY-MM-DD"),
        ("run ../../etc/passwd", {}, "no run_id. Write YYYY-MM-DD"),
        ("status today", {}, "no run_id. Write YYYY-MM-DD"),
        ("run", {"COLLECTION_CONCURRENCY": "many"}, "COLLECTION_CONCURRENCY=many"),
        ("run", {"COLLECTION_DATABASE_URL": "mysql://x/y"}, "not the address of a supported database"),
        ("run", {"COLLECTION_QUERIES": "absent.toml"}, "there is no such file. COLLECTION_QUERIES names"),
        ("run", {"COLLECTION_EMULATOR_FAULTS": "maps=slow"}, "COLLECTION_EMULATOR_FAULTS: fault 'maps=slow'"),
        ("run 2026-11-29 --only detail_page", {}, "no job 'detail_page'. Did you mean 'detail_pages'?"),
        ("rerun search_results 2026-11-29", {"COLLECTION_QUERIES": "absent.toml"}, "there is no such file"),
        ("retract search_results 2026-11-29 --reason=", {}, "--reason is empty"),
        ("retract search_results 2026-11-29", {}, "Missing option '--reason'"),
        ("prune", {}, "Missing option '--keep-days'"),
        ("emulator --faults everything", {}, "is not of the form endpoint=fault"),
        ("sattus", {}, "No such command 'sattus'"),
    ],
)
def test_is_refused_before_anything_is_written(
    desk: Desk, command: str, environment: dict[str, str], words: str
) -> None:
    done = desk.collect(*command.split(), **environment)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert "Traceback" not in done.err
    assert [path.name for path in desk.folder.iterdir() if path.name != "loaded.txt"] == ["queries.toml"]


def test_a_run_that_there_is_not_cannot_be_looked_at_or_changed(desk: Desk) -> None:
    for command in ("status 2026-11-29", "why search_results 2026-11-29", "rerun search_results 2026-11-29"):
        done = desk.collect(*command.split())
        assert (done.code, done.out) == (2, "")
        assert "There is no run 2026-11-29. Open it with: collect run 2026-11-29" in done.err


def test_a_database_that_cannot_be_opened_is_wrong_configuration(desk: Desk) -> None:
    (desk.folder / "taken").write_text("no folder")
    done = desk.collect("run", COLLECTION_DATABASE_URL=f"sqlite:///{desk.folder / 'taken' / 'collection.db'}")
    assert (done.code, done.out) == (2, "")
    assert "Choose another place with COLLECTION_DATABASE_URL" in done.err
