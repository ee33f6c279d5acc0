"""What `test_full_disk` runs where SMALL_DISK names a folder that is a disk of its own, of a few megabytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from collection_pipeline.engine.store import Store, StoreUnavailableError
from collection_pipeline_tests import children
from collection_pipeline_tests.failures.conftest import NewDesk
from collection_pipeline_tests.failures.desk import RUN, Desk
from collection_pipeline_tests.failures.small_disk import fill
from collection_pipeline_tests.failures.surroundings import impatient
from collection_pipeline_tests.failures.trials import charged, goes_on
from collection_pipeline_tests.store.world import World, dataset_of, places
from deploy.postgres.server import PostgresServer


@pytest.fixture
def disk() -> Path:
    return Path(os.environ["SMALL_DISK"])


@pytest.fixture
def server(disk: Path) -> Iterator[PostgresServer]:
    """A server whose data lies on the small disk."""
    server = PostgresServer(disk / "server")
    with server.running():
        yield server


def searched(new_desk: NewDesk, url: str) -> Desk:
    """The search is done, and the details will take long enough to fill a disk on a busy machine."""
    desk = new_desk(url, latency_ms=1000.0)
    desk.environment["COLLECTION_CONCURRENCY"] = "2"
    desk.collect("run", RUN, "--only", "search_results")
    return desk


def interrupted(desk: Desk, disk: Path, server: PostgresServer | None = None) -> str:
    """Fill the disk in the middle of the details; with a server, have it need a new file of its log. What is said."""
    process, output = desk.start("run", RUN, "--only", "detail_pages", prepare=impatient)
    charged(desk, 6, process, output)
    fill(disk)
    if server is not None:
        exhaust_log(server)
    assert children.ended(process) == 1
    desk.environment["COLLECTION_CONCURRENCY"] = "20"  # what is left goes in one second
    said = output.read_text()
    assert "Traceback" not in said
    return said


def exhaust_log(server: PostgresServer) -> None:
    """Use up the file of the log that the server has; the next one has no room."""
    with suppress(psycopg.OperationalError), psycopg.connect(server.url(), autocommit=True) as connection:
        for _ in range(20):
            connection.execute("SELECT pg_logical_emit_message(false, 'test', 'something to log'), pg_switch_wal()")


def nothing_half_made(desk: Desk) -> None:
    assert desk.one("SELECT count(*) FROM artifacts WHERE job_id = 'detail_pages'") == 0
    assert 0 < desk.one("SELECT count(*) FROM requests WHERE job_id = 'detail_pages' AND kind = 'ok'") < 20


def test_sqlite(new_desk: NewDesk, disk: Path) -> None:
    desk = searched(new_desk, f"sqlite:///{disk}/collection.db")

    said = interrupted(desk, disk)

    assert f"Run {RUN} stopped. The database sqlite:///" in said
    assert "has no room left on its disk. Make room, then repeat the command" in said
    (disk / "filler").unlink()
    nothing_half_made(desk)
    goes_on(desk)


def test_postgresql(new_desk: NewDesk, disk: Path, server: PostgresServer) -> None:
    """Tables cannot grow: the server refuses what needs room, and goes on."""
    with server.new_database() as url:
        desk = searched(new_desk, url)

        said = interrupted(desk, disk)

        assert "has no room left. Make room on the server, then repeat the command" in said
        nothing_half_made(desk)
        (disk / "filler").unlink()
        goes_on(desk)


def test_postgresql_while_rows_are_written(disk: Path, server: PostgresServer) -> None:
    with server.new_database() as url, Store.open(url) as store:
        world = World(store)
        world.open(RUN)
        attempt = world.claim(RUN, "search")
        store.prepare(dataset_of("search"))
        filler = fill(disk)

        with pytest.raises(StoreUnavailableError, match="has no room left"):
            world.publish(attempt, (places(*["x" * 1_000] * 1_000) for _ in range(10)))

        filler.unlink()
        assert world.publish(attempt).artifact.version == 1


def test_postgresql_without_room_for_its_log(new_desk: NewDesk, disk: Path, server: PostgresServer) -> None:
    """The log cannot grow: the server crashes, cannot recover, and stays away until somebody starts it again."""
    with server.new_database() as url:
        desk = searched(new_desk, url)

        said = interrupted(desk, disk, server)

        assert "nothing half-made was kept" in said
        assert "cannot be reached" in desk.collect("status", RUN, expect=2)
        (disk / "filler").unlink()
        server.start()
        nothing_half_made(desk)
        goes_on(desk)


def test_reports(new_desk: NewDesk, sqlite_url: str, disk: Path) -> None:
    desk = searched(new_desk, sqlite_url)
    desk.environment |= {"COLLECTION_REPORTS": str(disk / "reports"), "COLLECTION_CONCURRENCY": "20"}
    filler = fill(disk)

    said = desk.collect("run", RUN, "--only", "detail_pages", expect=1)

    assert "it cannot be written to: No space left on device" in said
    assert desk.one("SELECT count(*) FROM requests WHERE job_id = 'detail_pages'") == 0, "nothing was bought"
    filler.unlink()
    for job_id in ("detail_pages", "news_mentions"):
        desk.collect("run", RUN, "--only", job_id)
    filler = fill(disk)

    said = desk.collect("run", RUN, expect=1)

    assert "Make the location (COLLECTION_REPORTS) writable" in said
    assert "Traceback" not in said
    assert desk.statuses()["daily_report"] == "failed"
    assert desk.one("SELECT count(*) FROM artifacts WHERE job_id = 'daily_report'") == 0
    assert not list((disk / "reports").rglob("report.html"))
    filler.unlink()
    desk.collect("rerun", "daily_report", RUN)
    assert {path.parent.name for path in (disk / "reports").rglob("*") if path.is_file()} == {"v1"}
