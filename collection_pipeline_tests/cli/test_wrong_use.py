"""Wrong use and wrong configuration: exit code 2, words that say what would be right, and nothing written."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import collection_pipeline
from collection_pipeline_tests.cli.desk import Desk

PACKAGE = Path(collection_pipeline.__file__).parent


@pytest.mark.parametrize(
    ("command", "environment", "words"),
    [
        ("run 2026-11-31", {}, "no run_id: there is no such date or time. Write YYYY-MM-DD"),
        ("run ../../etc/passwd", {}, "no run_id. Write YYYY-MM-DD"),
        (f"why x{'x' * 9999} 2026-11-31", {}, "'2026-11-31' is no run_id"),
        ("status today", {}, "no run_id. Write YYYY-MM-DD"),
        ("run", {"COLLECTION_CONCURRENCY": "many"}, "COLLECTION_CONCURRENCY=many"),
        ("run", {"COLLECTION_DATABASE_URL": "mysql://x/y"}, "not the address of a supported database"),
        ("run", {"COLLECTION_DATABASE_URL": "postgresql://u:p@h:port/db"}, "The database URL cannot be read."),
        ("run", {"COLLECTION_DATABASE_URL": "postgresql://u:p@h/db?foo=bar"}, "knows no connection option 'foo'"),
        ("run", {"COLLECTION_DATABASE_URL": "sqlite:///~nosuchuser/x"}, "names no user of this machine"),
        ("run", {"COLLECTION_DATA": "~nosuchuser/x"}, "COLLECTION_DATA=~nosuchuser/x: this machine has no such user"),
        ("run", {"COLLECTION_QUERIES": "~nosuchuser/x"}, "COLLECTION_QUERIES=~nosuchuser/x: this machine has no such"),
        ("run", {"COLLECTION_REPORTS": "~nosuchuser/x"}, "COLLECTION_REPORTS=~nosuchuser/x: this machine has no such"),
        ("run", {"COLLECTION_REPORTS": "nosuch://x"}, "no way to write to nosuch:// here: Protocol not known"),
        ("run", {"COLLECTION_REPORTS": "s3://b/x"}, "no way to write to s3:// here: Install s3fs"),
        ("run", {"COLLECTION_REPORTS": "ftp://me:secret@host/x"}, "names a user or a password in its address. Leave"),
        ("run", {"COLLECTION_REPORTS": "queries.toml/reports"}, "queries.toml is no folder. Expected: a folder"),
        ("run", {"ALERT_URLS": "json://127.0.0.1,slakc://token"}, "ALERT_URLS: address 2 is not"),
        ("prune --keep-days 99999999999", {}, "is not in the range 1<=x<=36500"),
        ("why search_results 2026-11-29", {}, "There is no run 2026-11-29"),
        ("status 2026-11-29", {}, "There is no run 2026-11-29"),
        ("rerun search_results 2026-11-29", {}, "There is no run 2026-11-29"),
        ("retract search_results 2026-11-29 --reason=wrong", {}, "There is no run 2026-11-29"),
        ("run", {"COLLECTION_QUERIES": "absent.toml"}, "there is no such file. COLLECTION_QUERIES names"),
        ("run", {"COLLECTION_EMULATOR_FAULTS": "maps=slow"}, "COLLECTION_EMULATOR_FAULTS: fault 'maps=slow'"),
        ("run 2026-11-29 --only detail_page", {}, "no job 'detail_page'. Did you mean 'detail_pages'?"),
        ("rerun search_results 2026-11-29", {"COLLECTION_QUERIES": "absent.toml"}, "there is no such file"),
        ("retract search_results 2026-11-29 --reason=", {}, "Say with --reason"),
        ("retract search_results 2026-11-29", {}, "Say with --reason"),
        ("retract search_results 2026-11-29 --reason=a\x1b[2Jb", {}, "without control characters"),
        ("retract search_results 2026-11-29 --reason=\udcff", {}, "in UTF-8"),
        (f"retract search_results 2026-11-29 --reason={'x' * 501}", {}, "at most 500 characters"),
        ("status", {"COLLECTION_DATA": "a" * 300}, "cannot be used: File name too long."),
        ("status", {"COLLECTION_DATABASE_URL": f"sqlite:///{'a' * 300}"}, "cannot be used: File name too long."),
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
    assert [path.name for path in desk.folder.iterdir()] == ["queries.toml"]


@pytest.mark.parametrize(
    ("file", "right", "wrong", "words"),
    [
        (
            "assets.py",
            'policy="hard",',
            "",
            "missing 1 required keyword-only argument: 'policy'",
        ),
        ("assets.py", 'policy="hard"', 'polcy="hard"', "got an unexpected keyword argument 'polcy'"),
        (
            "assets.py",
            "checks=[Present",
            "checks=[Present[",
            "SyntaxError: closing parenthesis ')' does not match",
        ),
        ("automation.py", '"0 6 * * *"', '"daily"', "Found invalid cron schedule 'daily'"),
    ],
)
def test_a_wrong_declaration_is_told_with_its_file_and_line_and_without_a_traceback(
    desk: Desk, file: str, right: str, wrong: str, words: str
) -> None:
    copy = desk.folder / "collection_pipeline"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / file).write_text((copy / file).read_text("utf-8").replace(right, wrong, 1), "utf-8")
    done, _ = desk.collect_afresh("run")
    assert (done.code, done.out) == (2, "")
    (said,) = done.err.splitlines()
    assert re.match(rf"{file}:\d+: ", said)
    assert words in said
    assert "Traceback" not in said
    assert not (desk.folder / "data").exists()


def test_a_run_that_there_is_not_cannot_be_looked_at_or_changed(desk: Desk) -> None:
    for command in ("status 2026-11-29", "why search_results 2026-11-29", "rerun search_results 2026-11-29"):
        done = desk.collect(*command.split())
        assert (done.code, done.out) == (2, "")
        assert "There is no run 2026-11-29. Open it with: collect run 2026-11-29" in done.err


def test_looking_for_the_newest_run_begins_no_database(desk: Desk) -> None:
    done = desk.collect("status")
    assert (done.code, done.out) == (0, "")
    assert "There is no run yet." in done.err
    assert not (desk.folder / "data").exists()


def test_a_database_that_cannot_be_opened_is_wrong_configuration(desk: Desk) -> None:
    (desk.folder / "taken").write_text("no folder")
    done = desk.collect("run", COLLECTION_DATABASE_URL=f"sqlite:///{desk.folder / 'taken' / 'collection.db'}")
    assert (done.code, done.out) == (2, "")
    assert "Choose another place with COLLECTION_DATABASE_URL" in done.err
