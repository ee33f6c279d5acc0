"""The connection to SQLite or PostgreSQL: two kinds of transaction, and clear words when there is none to be had.

**SQLite** runs in WAL mode: readers never wait for the writer, nor it for them. Writers begin with `BEGIN IMMEDIATE`: a
second one waits its turn at the door (up to `BUSY_TIMEOUT_S`) instead of failing half-way with "database is locked".
`synchronous=FULL` syncs the log at every commit: in WAL mode the default of most builds, NORMAL, survives a power cut
intact but may forget the last commits, and those may be answers that were paid for. It costs one fsync per transaction,
which is why the callers batch (https://www.sqlite.org/pragma.html#pragma_synchronous). WAL needs a local disk.

**PostgreSQL** writes at READ COMMITTED and serialises the changes of one run by locking its row in `runs` first, so
that nothing is ever retried for a serialisation failure; reads see one REPEATABLE READ snapshot. Commits are durable as
the server says (`synchronous_commit`, on by default; leave it on for the same reason).
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from collection_pipeline.engine.store.errors import StoreUnavailableError, StoreUrlError
from collection_pipeline.engine.store.sqlite_file import SqliteFile

BUSY_TIMEOUT_S = 120
CONNECT_TIMEOUT_S = 10

PAGE_BYTES = 16_384
"""Of a new SQLite file. Rows are a kilobyte or two here; with 4,096 bytes a page, writing takes half as long again."""

# Advisory locks. The numbers only have to differ; they spell the words.
SCHEMA = 0x736368656D61
DATASETS = 0x64617461736574
RETRACTION = 0x72657472616374
EPISODES = 0x657069736F64

_FORMS = "Write sqlite:///path/to/collection.db or postgresql://user:password@host:5432/database."


class Database:
    """One database, opened lazily. `read` and `write` are the only ways in."""

    def __init__(self, url: str) -> None:
        self.url = normalise(url)
        self.shown = self.url.render_as_string(hide_password=True)
        self.file: SqliteFile | None = None
        self.known_datasets: dict[str, object] = {}
        # Parameters are data and may be anything: they stay out of error texts.
        options: dict[str, Any] = {
            "hide_parameters": True,
            "json_serializer": partial(json.dumps, ensure_ascii=False, separators=(",", ":")),
        }
        if self.is_sqlite:
            self.path = Path(str(self.url.database))
            self.file = SqliteFile.of(self.path)
            self.engine = sa.create_engine(self.url, connect_args={"timeout": BUSY_TIMEOUT_S}, **options)
            self.file.register(self.engine)
            sa.event.listen(self.engine, "connect", _configure_sqlite)
            sa.event.listen(self.engine, "begin", _begin_sqlite)
        else:
            # A server that was restarted is noticed before a transaction starts, not in its middle.
            self.engine = sa.create_engine(
                self.url,
                pool_pre_ping=True,
                connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "options": "-c timezone=UTC"},
                **options,
            )
        self._reading = self.engine.execution_options(
            **({} if self.is_sqlite else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True})
        )
        self._writing = self.engine.execution_options(**({"begin": "IMMEDIATE"} if self.is_sqlite else {}))

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A transaction that sees one moment of the database and changes nothing."""
        with self.translated(), self._connected(), self._reading.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction that is kept whole if the block ends well, and not at all if it does not."""
        with self.translated(), self._connected(), self._writing.begin() as connection:
            yield connection

    def insert_new(self, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
        """An INSERT that leaves existing rows alone."""
        insert = sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)
        return insert.on_conflict_do_nothing()

    def enter_wal_mode(self) -> None:
        """Switch a SQLite file to WAL, which it remembers. Several processes may try at once; one of them succeeds."""
        with self.translated(), self._connected():
            deadline = time.monotonic() + BUSY_TIMEOUT_S
            while True:
                try:
                    with self.engine.connect() as connection:
                        # The mode cannot change inside a transaction, so this goes around SQLAlchemy's.
                        raw: Any = connection.connection.driver_connection
                        raw.execute(f"PRAGMA page_size={PAGE_BYTES}")
                        raw.execute("PRAGMA journal_mode=WAL")
                    return
                except sqlite3.OperationalError as error:
                    if "locked" not in str(error) or time.monotonic() > deadline:
                        raise
                    time.sleep(0.02)

    @contextmanager
    def translated(self, *drivers: type[Exception]) -> Iterator[None]:
        """Raises `StoreUnavailableError` for what a driver says of a database that cannot be used.

        `drivers`: the base errors of drivers that are used beside SQLAlchemy's.
        """
        errors: tuple[type[Exception], ...] = (sa.exc.DBAPIError, self.engine.dialect.loaded_dbapi.Error, *drivers)
        try:
            yield
        except errors as error:
            words = _advice(error.orig if isinstance(error, sa.exc.DBAPIError) else error, sqlite=self.is_sqlite)
            if words is None:
                raise
            raise StoreUnavailableError(f"The database {self.shown} {words}. ({type(error).__name__})") from error

    def close(self) -> None:
        """Give the connections back. The database may be used again afterwards."""
        self.engine.dispose()

    def _connected(self) -> AbstractContextManager[None]:
        return nullcontext() if self.file is None else self.file.connected()


def normalise(url: str) -> sa.URL:
    """The URL with the driver that is used for it. Raises `StoreUrlError`, which never shows a password."""
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):  # a port that is no number
        # Without its cause, which may quote a piece of the password.
        raise StoreUrlError(f"The database URL cannot be read. {_FORMS}") from None
    kind = parsed.drivername.partition("+")[0]
    if kind in ("postgresql", "postgres"):
        # SQLAlchemy chooses a driver for a bare postgresql:// by its own version; here it is always psycopg 3.
        return _checked_options(parsed.set(drivername="postgresql+psycopg"))
    if kind != "sqlite":
        raise StoreUrlError(f"There is no store for {parsed.drivername}:// URLs. {_FORMS}")
    if not parsed.database or parsed.database == ":memory:" or parsed.query:
        raise StoreUrlError(f"The store needs a SQLite file of its own, shared by several processes. {_FORMS}")
    try:
        path = Path(parsed.database).expanduser().absolute()
    except RuntimeError as error:
        raise StoreUrlError(f"The path {parsed.database} names no user of this machine. {_FORMS}") from error
    return parsed.set(drivername="sqlite", database=str(path))


def _checked_options(url: sa.URL) -> sa.URL:
    """The URL, if libpq knows what stands behind its question mark; asked before there is a connection to make."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import make_conninfo

    for name in url.query.keys() - {"host", "port"}:  # those SQLAlchemy takes apart
        try:
            make_conninfo(**{name: ""})
        except ProgrammingError:
            raise StoreUrlError(f"PostgreSQL knows no connection option {name!r}; remove it. {_FORMS}") from None
    return url


def advisory_lock(connection: sa.Connection, number: int, *, shared: bool = False) -> None:
    """On PostgreSQL, let one transaction at a time past this point, or all that share it; taken before row locks.

    SQLite's writers are alone anyway.
    """
    if connection.dialect.name == "postgresql":
        lock = sa.func.pg_advisory_xact_lock_shared if shared else sa.func.pg_advisory_xact_lock
        connection.execute(sa.select(lock(number)))


def _configure_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # Transactions are begun by `_begin_sqlite` alone; the driver's own ones would begin too late for IMMEDIATE.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA fullfsync=ON")  # macOS: a sync that reaches the disk, not only its cache
    connection.execute("PRAGMA foreign_keys=ON")


def _begin_sqlite(connection: sa.Connection) -> None:
    connection.exec_driver_sql(f"BEGIN {connection.get_execution_options().get('begin', 'DEFERRED')}")


_CLOSED = "cannot be opened. Check that the folder exists and that you may write to it"

_EMPTIED = (
    "no longer has its tables: it was removed or replaced meanwhile. Put it back, then type the same command again; or"
    " type it to begin anew"
)

_SQLITE_ADVICE = (
    ("no such table", _EMPTIED),
    ("database is locked", "is locked: another process has been writing for a long time. Wait for it, or stop it"),
    ("unable to open", _CLOSED),
    ("failed to open", _CLOSED),  # ADBC, whose reason is a lack of memory, whatever it was
    ("readonly", "is read-only. Give this user the right to write to the file and its folder"),
    ("disk is full", "has no room left on its disk. Make room, then repeat the command; nothing half-made was kept"),
    ("disk i/o", "cannot be read or written: the disk reports an error. Check the disk and the room on it"),
    ("not a database", "is not a SQLite file. Point COLLECTION_DATABASE_URL at another path, or move that file away"),
    ("malformed", "is damaged. Restore it from a backup, or move it away to start anew"),
)

_POSTGRESQL_ADVICE = (
    ("53100", "has no room left. Make room on the server, then repeat the command; nothing half-made was kept"),
    ("53", "has no resources left (connections, memory). Wait, or raise the server's limits"),
    ("28", "does not accept this user and password. Check COLLECTION_DATABASE_URL"),
    ("3D", "does not exist on that server. Create it, or check COLLECTION_DATABASE_URL"),
    ("25006", "is read-only. Point COLLECTION_DATABASE_URL at the primary server"),
    ("42P01", _EMPTIED),
    ("42501", "does not allow this user to do that. Let it create tables in the schema"),
    ("57", "was stopped by its server. Repeat the command when it is up again; nothing half-made was kept"),
    ("08", "cannot be reached. Check that the server runs, then repeat the command; nothing half-made was kept"),
)

# libpq hands over no SQLSTATE when a connection cannot be made, only the server's words.
_REFUSALS = (
    ("authentication failed", "28000"),
    ("pg_hba.conf", "28000"),
    ("role", "28000"),
    ("does not exist", "3D000"),
    ("too many", "53300"),
    ("the database system is", "57P03"),
)


def _advice(error: BaseException | None, *, sqlite: bool) -> str | None:
    """What to tell people about a database that cannot be used; None for every other kind of error."""
    text = str(error).lower()
    if sqlite:
        return next((words for sign, words in _SQLITE_ADVICE if sign in text), None)
    state = _sqlstate(error, text)
    return next((words for sign, words in _POSTGRESQL_ADVICE if state.startswith(sign)), None)


def _sqlstate(error: BaseException | None, text: str) -> str:
    state: str | None = getattr(error, "sqlstate", None)
    if state is not None:
        return state
    if type(error).__name__ != "OperationalError":
        return ""
    refusal = text.partition("fatal:")[2]
    return next((state for sign, state in _REFUSALS if sign in refusal), "08006")
