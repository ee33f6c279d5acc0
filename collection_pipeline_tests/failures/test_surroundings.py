"""Disk full, database gone or locked, reports out of reach: clear words, nothing half-made, and then it goes on."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from collection_pipeline.engine.store import Store, StoreUnavailableError
from collection_pipeline_tests import children
from collection_pipeline_tests.failures.conftest import NewDesk
from collection_pipeline_tests.failures.desk import RUN, Desk
from collection_pipeline_tests.failures.surroundings import impatient, room_for, without_privileges
from collection_pipeline_tests.failures.trials import charged, goes_on
from collection_pipeline_tests.store.world import World, dataset_of, places
from deploy.postgres.server import PostgresServer


@pytest.fixture
def searched(new_desk: NewDesk, sqlite_url: str) -> Desk:
    """The search is done, on SQLite."""
    desk = new_desk(sqlite_url, latency_ms=50.0)
    desk.environment["COLLECTION_CONCURRENCY"] = "4"
    desk.collect("run", RUN, "--only", "search_results")
    return desk


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("collection.db", "has no room left on its disk. Make room, then repeat the command"),
        ("", "database or disk is full"),
    ],
    ids=["for the answers", "for anything"],
)
def test_no_room(searched: Desk, name: str, words: str) -> None:
    said = searched.collect("run", RUN, "--only", "detail_pages", expect=1, prepare=partial(room_for, 1, name))

    assert words in said
    assert "Traceback" not in said
    assert searched.one("SELECT count(*) FROM artifacts WHERE job_id = 'detail_pages'") == 0
    goes_on(searched)


def test_a_file_that_others_have_locked(searched: Desk) -> None:
    with sqlite3.connect(searched.database_url.removeprefix("sqlite:///"), isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        said = searched.collect("run", RUN, "--only", "detail_pages", expect=1, prepare=impatient)
        other.execute("ROLLBACK")

    assert "is locked: another process has been writing for a long time. Wait for it, or stop it" in said
    assert "Traceback" not in said
    goes_on(searched)


def test_reports_out_of_reach(searched: Desk) -> None:
    (searched.folder / "file").touch()

    said = searched.collect("run", RUN, expect=2, COLLECTION_REPORTS=str(searched.folder / "file" / "reports"))

    assert "file is no folder. Expected: a folder or a bucket" in said
    assert searched.statuses()["detail_pages"] == "pending", "nothing was bought"
    goes_on(searched)


def test_a_folder_that_may_only_be_read(searched: Desk, tmp_path: Path) -> None:
    database = tmp_path / "collection.db"
    database.chmod(0o444)
    tmp_path.chmod(0o555)

    said = searched.collect("run", RUN, expect=1, prepare=without_privileges)

    assert "is read-only. Give this user the right to write to the file and its folder" in said
    assert "Traceback" not in said
    tmp_path.chmod(0o755)
    database.chmod(0o644)
    goes_on(searched)


class TestServer:
    def test_that_does_not_run(self, new_desk: NewDesk, postgres_server: PostgresServer, postgres_url: str) -> None:
        desk = new_desk(postgres_url)
        postgres_server.stop()
        try:
            said = desk.collect("run", RUN, expect=2)
        finally:
            postgres_server.start()

        assert "cannot be reached. Check that the server runs, then repeat the command" in said
        assert postgres_server.password not in said
        assert "Traceback" not in said
        assert desk.account.credits_charged == 0
        desk.collect("run", RUN, "--only", "search_results")

    def test_that_goes_away_for_good(
        self, new_desk: NewDesk, postgres_server: PostgresServer, postgres_url: str
    ) -> None:
        desk = new_desk(postgres_url, latency_ms=100.0)
        desk.environment["COLLECTION_CONCURRENCY"] = "2"
        desk.collect("run", RUN, "--only", "search_results")
        process, output = desk.start("run", RUN, "--only", "detail_pages", prepare=impatient)
        charged(desk, 4, process, output)
        postgres_server.stop("immediate")
        code = children.ended(process)
        postgres_server.start()

        said = output.read_text()
        assert code == 1, said
        assert "nothing half-made was kept" in said
        assert postgres_server.password not in said
        assert "Traceback" not in said
        assert desk.one("SELECT count(*) FROM artifacts WHERE job_id = 'detail_pages'") == 0
        goes_on(desk)


class TestServerThatGoesAwayWhileRows:
    def test_are_written(self, postgres_server: PostgresServer, postgres_url: str) -> None:
        def frames() -> Iterator[pd.DataFrame]:
            yield places("first")
            postgres_server.stop("immediate")
            for _ in range(100):  # more than the connection buffers
                yield places(*["x" * 1_000] * 100)

        with Store.open(postgres_url) as store:
            world = World(store)
            world.open(RUN)
            attempt = world.claim(RUN, "search")
            try:
                with pytest.raises(StoreUnavailableError, match="nothing half-made was kept"):
                    world.publish(attempt, frames())
            finally:
                postgres_server.start()
            assert world.publish(attempt).artifact.version == 1

    def test_are_read(self, postgres_server: PostgresServer, postgres_url: str) -> None:
        with Store.open(postgres_url) as store:
            world = World(store)
            world.open(RUN)
            (published,) = world.done(RUN, "search")
            postgres_server.stop("immediate")
            try:
                with pytest.raises(StoreUnavailableError, match=r"cannot be reached|was stopped"):
                    store.read(dataset_of("search"), published.artifact)
            finally:
                postgres_server.start()
            assert len(store.read(dataset_of("search"), published.artifact)) == 2


def test_a_second_attempt_is_told_who_holds_the_job_and_takes_over_from_the_dead(searched: Desk) -> None:
    process, output = searched.start("run", RUN, "--only", "detail_pages", COLLECTION_RATE_PER_S="1")
    charged(searched, 2, process, output)

    said = searched.collect("run", RUN, "--only", "detail_pages", expect=1)

    assert f"detail_pages of run {RUN} is already running: Dagster run" in said
    assert f"(process {process.pid} on" in said
    process.kill()
    assert children.ended(process) == -signal.SIGKILL
    goes_on(searched)
