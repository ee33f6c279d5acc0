"""`collect status` and `why` on runs made by hand: who waits for whom and why, what failed, what to type."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from collection_pipeline.engine.store import Store
from collection_pipeline_tests.cli import crafted
from collection_pipeline_tests.cli.desk import Desk

HOSTILE = "\x1b[31mred\x1b]0;title\x07 [bold]x[/bold] \u202eevil\u2066 \x9b2J\nnext: all is well"


@pytest.fixture
def store(desk: Desk) -> Iterator[Store]:
    with Store.open(desk.database_url) as opened:
        yield opened


def test_of_a_run_under_way(desk: Desk, store: Store) -> None:
    crafted.open_run(store)
    crafted.start(store, "search_results")
    done = desk.collect("status", "--json")
    assert done.code == 0
    run = done.json
    jobs = {job["job_id"]: job for job in run.pop("jobs")}
    assert run == {
        "run_id": "2026-11-29",
        "as_of": None,
        "settled": False,
        "credits_charged": 0,
        "credits_reused": 0,
    }
    assert list(jobs) == ["search_results", "detail_pages", "news_mentions", "daily_report"]
    assert jobs["search_results"] == {
        "job_id": "search_results",
        "status": "running",
        "deps": [],
        "started_at": "2026-11-29T06:00:00+00:00",
        "finished_at": None,
        "version": None,
        "as_of": None,
        "degraded": False,
        "outdated": False,
        "reason": "running since 06:00 in Dagster run dagster-",
        "waits_for": [],
        "next_command": None,
    }
    assert jobs["detail_pages"]["status"] == "pending"
    assert jobs["detail_pages"]["waits_for"] == [
        {
            "job_id": "search_results",
            "policy": "hard",
            "because": "running since 06:00 in Dagster run dagster-",
        }
    ]


def test_a_job_whose_process_was_killed_is_failed_for_whoever_looks(desk: Desk, store: Store) -> None:
    crafted.open_run(store)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        crafted.start(store, "search_results", holder=crafted.holder_in(process.pid))
        assert desk.collect("why", "search_results", crafted.RUN_ID).code == 0
        assert store.run_view(crafted.RUN_ID).jobs[0].status == "running"
        process.kill()

    done = desk.collect("status")
    assert done.code == 1
    assert f"process {process.pid} on" in done.out
    assert "ended without finishing it" in done.out
    assert done.out.endswith("Type: collect run 2026-11-29\n")
    assert store.run_view(crafted.RUN_ID).jobs[0].status == "failed"


def test_of_a_failure_names_the_root_cause_and_the_repair_once(desk: Desk, store: Store) -> None:
    crafted.open_run(store)
    crafted.fail(store, "search_results", "out of credits")
    done = desk.collect("status")
    assert done.code == 1
    headline, head, *rows = done.out.splitlines()
    assert headline == "Run 2026-11-29: settled"
    assert head.split() == ["job", "status", "version", "as", "of", "time", "reason"]
    assert rows[0].startswith("search_results  failed")
    assert "failed at 06:00 (out of credits)" in rows[0]
    assert rows[1].startswith("detail_pages    pending, blocked")
    assert rows[1].endswith("blocked: search_results failed at 06:00")  # the reason is in its own row
    assert done.out.count("Type: collect rerun search_results 2026-11-29") == 1
    assert "type:" not in done.out
    assert "API credits: 0 spent, 0 saved by reuse, no limit set" in done.out


def test_shows_what_is_left_of_the_budget(desk: Desk, store: Store) -> None:
    crafted.open_run(store)
    assert "0 saved by reuse, 500 left of 500" in desk.collect("status", COLLECTION_MAX_CREDITS="500").out


def test_is_about_the_newest_run_unless_one_is_named(desk: Desk, store: Store) -> None:
    for run_id in ("2026-11-29", "2026-11-30", "2026-11-28"):
        crafted.open_run(store, run_id)
    assert desk.collect("status", "--json").json["run_id"] == "2026-11-30"
    assert desk.collect("status", "2026-11-28", "--json").json["run_id"] == "2026-11-28"


def test_watching_shows_every_change_until_the_run_is_settled(desk: Desk, store: Store) -> None:
    crafted.open_run(store)
    attempt = crafted.start(store, "search_results")
    with desk.start("status", "--watch", "--json") as watching:
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())
        store.fail(attempt, "out of credits", "out_of_credits", crafted.OPENED)
        last = json.loads(watching.stdout.readline())
        rest, errors = watching.communicate(timeout=60)
    assert (first["settled"], last["settled"], rest, errors, watching.returncode) == (False, True, "", "", 1)


def test_hostile_texts_reach_the_terminal_as_plain_visible_characters(desk: Desk, store: Store) -> None:
    crafted.open_run(store)
    crafted.fail(store, "search_results", HOSTILE)
    for command in ("status", "status --json", "why detail_pages 2026-11-29"):
        out = desk.collect(*command.split()).out
        assert not any(character in out for character in "\x1b\x07\x9b\u202e\u2066"), command
        assert not any(line.startswith("next: all is well") for line in out.splitlines()), command
    assert "[U+001B][31mred" in desk.collect("status").out
    assert "[bold]x[/bold]" in desk.collect("status").out


def test_why_explains_a_job_edge_by_edge(desk: Desk, store: Store) -> None:
    crafted.open_run(store)
    crafted.fail(store, "search_results", "out of credits")
    done = desk.collect("why", "daily_report", "2026-11-29")
    assert done.code == 0
    title, *edges = done.out.splitlines()
    assert title.startswith("daily_report of 2026-11-29: blocked: search_results failed at 06:00 (out of credits)")
    assert title.endswith("type: collect rerun search_results 2026-11-29")
    assert [edge.split(":")[0].strip() for edge in edges] == [
        "detail_pages (degrade, follow)",
        "news_mentions (optional, follow)",
    ]
    answer = desk.collect("why", "daily_report", "2026-11-29", "--json").json
    assert answer.keys() == {"run_id", "job_id", "status", "readiness", "wanted", "reason", "edges", "next_command"}
    assert (answer["status"], answer["readiness"], answer["wanted"]) == ("pending", "blocked", True)
    assert [(edge["upstream"], edge["resolution"]) for edge in answer["edges"]] == [
        ("detail_pages", "blocked"),
        ("news_mentions", "without"),
    ]


def test_why_knows_the_nearest_job(desk: Desk, store: Store) -> None:
    crafted.open_run(store)
    done = desk.collect("why", "search_result", "2026-11-29")
    assert (done.code, done.out) == (2, "")
    assert "There is no job 'search_result'. Did you mean 'search_results'?" in done.err


def test_of_the_end_of_something_bad_that_nobody_was_told(desk: Desk, store: Store) -> None:
    crafted.open_run(store)
    then = datetime(2026, 11, 29, 6, tzinfo=UTC)
    key = "failed:detail_pages"
    store.episode_transitions("2026-11-29", {key: "detail_pages failed"}, [], then)
    [healed] = store.episode_transitions("2026-11-29", {}, [key], then)
    store.mark_undelivered(healed, "a channel refused it.")
    assert f"Alert not delivered: {healed.text} (a channel refused it.)" in desk.collect("status").out
