"""Which databases there are, what is said when one cannot be used, and that nothing is lost between two libraries."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import psycopg
import pytest
import sqlalchemy as sa

from collection_pipeline.engine.store import (
    SchemaTooNewError,
    Store,
    StoreUnavailableError,
    StoreUrlError,
    bulk_read,
)
from collection_pipeline.engine.store import database as database_module
from collection_pipeline.engine.store.bulk_read import read_all
from collection_pipeline.engine.store.database import PAGE_BYTES, Database, normalise
from collection_pipeline.engine.store.migrations import SCHEMA_VERSION, prepare
from collection_pipeline.engine.store.schema import metadata
from collection_pipeline.engine.store.sqlite_file import SqliteFile
from collection_pipeline_tests.store import processes
from collection_pipeline_tests.store.world import World, dataset_of, places
from deploy.postgres.server import PostgresServer

RUN = "2026-11-29"


def statements_of(database: Database) -> list[str]:
    """The statements that the database is sent from now on."""
    statements: list[str] = []

    def remember(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        statements.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", remember)
    return statements


class TestUrls:
    @pytest.mark.parametrize("driver", ["postgresql", "postgres", "postgresql+psycopg2", "postgresql+psycopg"])
    def test_postgresql_is_always_reached_through_one_driver(self, driver: str) -> None:
        assert normalise(f"{driver}://u:secret@h:5432/db").drivername == "postgresql+psycopg"

    def test_a_relative_path_is_made_absolute(self, tmp_path: Path) -> None:
        assert normalise("sqlite:///data/x.db").database == str(tmp_path / "data" / "x.db")

    @pytest.mark.parametrize(
        "url", ["", "data.db", "mysql://u:secret@h/db", "sqlite://", "sqlite:///:memory:", "sqlite:///x?mode=secret"]
    )
    def test_any_other_is_refused_with_the_forms_there_are(self, url: str) -> None:
        with pytest.raises(StoreUrlError, match="sqlite:///path/to") as refused:
            Store.open(url)
        assert "secret" not in str(refused.value)


class TestPasswords:
    def test_are_not_shown(self, postgres_url: str, postgres_server: PostgresServer) -> None:
        password = postgres_server.password
        with Store.open(postgres_url) as store:
            assert password not in f"{store!r} {store.url} {store.database.engine!r}"
            assert "***" in store.url

    def test_nor_in_what_goes_wrong(self, postgres_url: str, postgres_server: PostgresServer) -> None:
        wrong = f"{postgres_server.password[:-4]}oops"
        with pytest.raises(StoreUnavailableError, match="Check COLLECTION_DATABASE_URL") as refused:
            Store.open(postgres_url.replace(postgres_server.password, wrong))
        assert wrong not in "".join(traceback.format_exception(refused.value))


class TestSchema:
    def test_opening_what_is_there_asks_one_question(self, database_url: str) -> None:
        Store.open(database_url).close()
        database = Database(database_url)
        statements = statements_of(database)
        prepare(database)
        assert [each for each in statements if not each.startswith("BEGIN")] == [
            "SELECT store_schema.version \nFROM store_schema"
        ]
        database.close()

    def test_eight_processes_may_make_it_at_once(self, database_url: str) -> None:
        assert processes.open_at_once(database_url) == [0] * 8

    def test_a_newer_one_is_refused_and_left_alone(self, database_url: str) -> None:
        Store.open(database_url).close()
        database = Database(database_url)
        with database.write() as connection:
            connection.execute(sa.text("UPDATE store_schema SET version = 99"))
        with pytest.raises(SchemaTooNewError, match=r"schema 99; this program knows \d+\..*update this one"):
            Store.open(database_url)
        with database.read() as connection:
            assert connection.execute(sa.text("SELECT version FROM store_schema")).scalar_one() == 99
        database.close()

    def test_an_older_one_is_migrated_step_by_step(self, world: World, database_url: str) -> None:
        world.open(RUN)
        world.done(RUN, "search")
        one, two = SCHEMA_VERSION + 1, SCHEMA_VERSION + 2
        steps = {
            one: lambda connection: connection.execute(sa.text("ALTER TABLE runs ADD COLUMN note text")),
            two: lambda connection: connection.execute(sa.text("UPDATE runs SET note = 'migrated'")),
        }
        database = Database(database_url)
        prepare(database, two, steps)
        prepare(database, two, {})
        with database.read() as connection:
            assert connection.execute(sa.text("SELECT note FROM runs")).scalar_one() == "migrated"
            assert connection.execute(sa.text("SELECT count(*) FROM search_places")).scalar_one() == 2
        database.close()

    def test_a_migration_that_fails_changes_nothing(self, database_url: str) -> None:
        Store.open(database_url).close()
        database = Database(database_url)

        def half_way(connection: sa.Connection) -> None:
            connection.execute(sa.text("ALTER TABLE runs ADD COLUMN note text"))
            raise InterruptedError

        with pytest.raises(InterruptedError):
            prepare(database, SCHEMA_VERSION + 1, {SCHEMA_VERSION + 1: half_way})
        columns = {column["name"] for column in sa.inspect(database.engine).get_columns("runs")}
        assert "note" not in columns
        Store.open(database_url).close()
        database.close()


@pytest.fixture
def lasting_url(postgres_server: PostgresServer) -> str:
    """A database that no connection of the fixture's watches over, so that the server may be stopped meanwhile."""
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS lasting WITH (FORCE)")
        connection.execute("CREATE DATABASE lasting")
    return postgres_server.url("lasting")


class TestTrouble:
    """A clear error, nothing half-made, and the next attempt succeeds."""

    def test_a_folder_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(StoreUnavailableError, match=r"cannot be made: File exists\..*COLLECTION_DATABASE_URL"):
            Store.open(f"sqlite:///{tmp_path}/file/collection.db")

    def test_a_file_that_is_no_database(self, tmp_path: Path) -> None:
        (tmp_path / "letter.db").write_text("Dear reader, this is no database.\n" * 100)
        with pytest.raises(StoreUnavailableError, match="is not a SQLite file"):
            Store.open(f"sqlite:///{tmp_path}/letter.db")

    def test_a_file_that_is_locked_for_too_long(self, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        Store.open(sqlite_url).close()
        monkeypatch.setattr(database_module, "BUSY_TIMEOUT_S", 0.05)
        other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with Store.open(sqlite_url) as store:
            with pytest.raises(StoreUnavailableError, match="is locked: another process"):
                World(store).open(RUN)
            other.execute("COMMIT")
            World(store).open(RUN)
        other.close()

    def test_a_file_that_somebody_writes_to_can_be_read(self, sqlite_url: str) -> None:
        with Store.open(sqlite_url) as store:
            world = World(store)
            world.open(RUN)
            [published] = world.done(RUN, "search")
        other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE runs SET settled_at = opened_at")
        with Store.open(sqlite_url) as store:
            assert len(store.read(dataset_of("search"), published.artifact)) == 2
            assert len(store.open_runs()) == 1
        other.close()

    @pytest.mark.parametrize(
        ("trouble", "relief", "words"),
        [
            ("PRAGMA query_only = ON", "PRAGMA query_only = OFF", "is read-only"),
            ("PRAGMA max_page_count = 1", "PRAGMA max_page_count = 1000000", "has no room left"),
        ],
    )
    def test_a_file_that_takes_nothing_more(self, sqlite_url: str, trouble: str, relief: str, words: str) -> None:
        with Store.open(sqlite_url) as store:
            world = World(store)
            world.open(RUN)
            attempt = world.claim(RUN, "search")
            world.publish(attempt, [places("before")])
            attempt = world.claim(RUN, "search")
            settings = [trouble]

            def set_up(connection: sqlite3.Connection, _record: object) -> None:
                connection.execute(settings[-1])

            sa.event.listen(store.database.engine, "connect", set_up)
            store.close()
            with pytest.raises(StoreUnavailableError, match=words):
                world.publish(attempt, (places(*map(str, range(5000))) for _ in range(3)))
            settings.append(relief)
            store.close()
            [search, *_] = store.run_view(RUN).jobs
            assert search.status == "running"
            assert search.latest is not None
            assert search.latest.artifact.version == 1
            assert world.publish(attempt, [places("after")]).artifact.version == 2

    @pytest.mark.parametrize(
        ("trouble", "words"),
        [
            (Path.unlink, "cannot be opened"),
            (lambda path: path.write_bytes(b"Dear reader" * 5_000), "is not a SQLite file"),
            (lambda path: path.write_bytes(path.read_bytes()[:PAGE_BYTES].ljust(10 * PAGE_BYTES)), "is damaged"),
        ],
        ids=["gone", "another file", "damaged"],
    )
    def test_a_file_that_is_gone_or_damaged_before_whole_columns_are_read(
        self, sqlite_url: str, trouble: Callable[[Path], object], words: str
    ) -> None:
        """Over another driver than everything else, which has to say the same of it, and makes no new file."""
        dataset, path = dataset_of("search"), Path(sqlite_url.removeprefix("sqlite:///"))
        with Store.open(sqlite_url) as store:
            world = World(store)
            world.open(RUN)
            [published] = world.done(RUN, "search")
        kept = path.read_bytes()
        trouble(path)
        before = path.exists()
        database = Database(sqlite_url)
        with pytest.raises(StoreUnavailableError, match=words):
            read_all(database, dataset, published.artifact, dataset.columns)
        assert path.exists() == before
        path.write_bytes(kept)
        assert len(read_all(database, dataset, published.artifact, dataset.columns)) == 2

    def test_a_file_that_is_locked_when_whole_columns_are_read(
        self, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bulk_read, "BUSY_TIMEOUT_S", 0.05)
        dataset, path = dataset_of("search"), sqlite_url.removeprefix("sqlite:///")
        with Store.open(sqlite_url) as store:
            world = World(store)
            world.open(RUN)
            [published] = world.done(RUN, "search")
        locking = f"import sqlite3; it = sqlite3.connect({path!r}); it.execute('PRAGMA locking_mode=EXCLUSIVE');"
        locking += "it.execute('UPDATE runs SET revision = 1'); print('locked', flush=True); input()"
        database = Database(sqlite_url)
        with subprocess.Popen(
            [sys.executable, "-c", locking], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "locked\n"
            with pytest.raises(StoreUnavailableError, match="is locked: another process"):
                read_all(database, dataset, published.artifact, dataset.columns)
            other.communicate("\n")
        assert len(read_all(database, dataset, published.artifact, dataset.columns)) == 2

    def test_a_server_that_went_away_and_came_back(self, lasting_url: str, postgres_server: PostgresServer) -> None:
        with Store.open(lasting_url) as store:
            world = World(store)
            world.open(RUN)
            attempt = world.claim(RUN, "search")
            postgres_server.stop("immediate")
            try:
                with pytest.raises(StoreUnavailableError, match="cannot be reached"):
                    world.publish(attempt)
                with pytest.raises(StoreUnavailableError, match="cannot be reached"):
                    store.open_runs()
            finally:
                postgres_server.start()
            assert world.publish(attempt).artifact.version == 1

    def test_a_server_that_went_away_before_whole_columns_are_read(
        self, lasting_url: str, postgres_server: PostgresServer
    ) -> None:
        """Over another driver than everything else, which has to say the same of it."""
        with Store.open(lasting_url) as store:
            world = World(store)
            world.open(RUN)
            [published] = world.done(RUN, "search")
            dataset = dataset_of("search")
            postgres_server.stop("immediate")
            try:
                with pytest.raises(StoreUnavailableError, match="cannot be reached") as refused:
                    read_all(store.database, dataset, published.artifact, dataset.columns)
                assert postgres_server.password not in "".join(traceback.format_exception(refused.value))
            finally:
                postgres_server.start()
            assert len(read_all(store.database, dataset, published.artifact, dataset.columns)) == 2

    def test_a_server_that_stops_in_the_middle_of_a_publish(
        self, lasting_url: str, postgres_server: PostgresServer
    ) -> None:
        with Store.open(lasting_url) as store:
            world = World(store)
            world.open(RUN)
            attempt = world.claim(RUN, "search")

            def frames() -> Iterator[pd.DataFrame]:
                yield places("a")
                yield places("b")
                postgres_server.stop("immediate")
                postgres_server.start()
                yield places(*map(str, range(100_000)))

            with pytest.raises(StoreUnavailableError, match="nothing half-made was kept"):
                world.publish(attempt, frames())
            assert world.statuses(RUN)["search"] == "running"
            assert world.publish(attempt).artifact.version == 1

    def test_a_database_that_does_not_exist(self, postgres_url: str) -> None:
        with pytest.raises(StoreUnavailableError, match="does not exist on that server"):
            Store.open(f"{postgres_url}_not")


class TestTwoLibrariesOnOneFile:
    """Python's sqlite3 and the ADBC driver bring a copy of SQLite each; together they could lose committed rows."""

    def test_a_frame_that_was_read_costs_no_commit(self, sqlite_url: str) -> None:
        path = sqlite_url.removeprefix("sqlite:///")
        passer_by = [sys.executable, "-c", f"import sqlite3; sqlite3.connect({path!r}).execute('SELECT 1 FROM runs')"]
        with Store.open(sqlite_url) as store:
            world = World(store)
            world.open(RUN)
            [published] = world.done(RUN, "search")
            store.read(dataset_of("search"), published.artifact)
            attempt = world.claim(RUN, "search")
            # A process that comes and goes tidies the log away if it believes to be the last one here.
            subprocess.run(passer_by, check=True)
            world.publish(attempt, [places("kept")])
            outside = (
                f"import sqlite3; print(sqlite3.connect({path!r}).execute('SELECT name FROM search_places').fetchall())"
            )
            seen = subprocess.run([sys.executable, "-c", outside], check=True, capture_output=True, text=True)
            assert seen.stdout == "[('kept',)]\n"

    def test_the_file_is_lent_only_while_nobody_here_has_it_open(self, sqlite_url: str) -> None:
        with Store.open(sqlite_url) as store:
            file = store.database.file
            assert file is SqliteFile.of(Path(sqlite_url.removeprefix("sqlite:///")))
            assert file is not None
            with store.database.read(), file.lent() as lent:
                assert not lent
            with file.lent() as lent, file.lent() as lent_twice:
                assert (lent, lent_twice) == (True, False)
                assert store.database.engine.pool.checkedin() == 0  # type: ignore[attr-defined]

    def test_whoever_wants_it_meanwhile_waits_until_it_is_back(self, sqlite_url: str) -> None:
        with Store.open(sqlite_url) as store:
            file = store.database.file
            assert file is not None
            order: list[str] = []
            started = threading.Event()

            def ask() -> None:
                started.set()
                store.open_runs()
                order.append("asked")

            thread = threading.Thread(target=ask)
            with file.lent() as lent:
                assert lent
                thread.start()
                started.wait()
                order.append("given back")
            thread.join()
            assert order == ["given back", "asked"]


def test_a_sqlite_file_is_set_up_to_be_safe_and_fast(sqlite_url: str) -> None:
    with Store.open(sqlite_url) as store, store.database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2  # full: synced at every commit
        assert connection.exec_driver_sql("PRAGMA page_size").scalar_one() == 16_384


def test_the_state_of_a_run_is_read_in_a_fixed_number_of_queries(world: World) -> None:
    run_ids = [f"2026-11-{day:02}" for day in range(20, 30)]
    world.open(*run_ids)
    statements = statements_of(world.store.database)
    counts = []
    for run_id in (run_ids[0], run_ids[-1]):
        for read in (world.state, world.store.run_view):
            statements.clear()
            read(run_id)
            counts.append(len(statements))
        for earlier in run_ids:
            world.done(earlier, "search", "details", "report")
    assert counts[:2] == counts[2:]
    assert max(counts) <= 6


def test_the_store_is_there_without_data_frames_or_dagster() -> None:
    code = (
        "import sys, collection_pipeline.engine.store as s; store = s.Store.open('sqlite:///x.db'); store.open_runs();"
        "heavy = ('pandas', 'numpy', 'pyarrow', 'adbc_driver_manager', 'dagster', 'psycopg');"
        "print([module for module in heavy if module in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_a_database_that_lost_its_tables_while_it_was_open_says_so_and_is_begun_anew(database_url: str) -> None:
    with Store.open(database_url) as store:
        with store.database.write() as connection:
            metadata.drop_all(connection)
        with pytest.raises(StoreUnavailableError, match=r"no longer has its tables.*type the same command again"):
            store.newest_runs(1)
    with Store.open(database_url) as store:
        assert store.newest_runs(1) == []
