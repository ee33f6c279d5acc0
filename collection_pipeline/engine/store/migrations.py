"""Which schema a database has, and how it gets the one this program needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sqlalchemy as sa

from collection_pipeline.engine.store.database import SCHEMA, Database, advisory_lock
from collection_pipeline.engine.store.errors import SchemaTooNewError, StoreUnavailableError
from collection_pipeline.engine.store.schema import metadata, store_schema

SCHEMA_VERSION = 2

Migrations = Mapping[int, Callable[[sa.Connection], None]]


def _store_time_zones(connection: sa.Connection) -> None:
    """Version 2: each run keeps the zone it was opened in. Of older runs nobody knows it; theirs stays NULL."""
    connection.execute(sa.text("ALTER TABLE runs ADD COLUMN timezone text"))


MIGRATIONS: Migrations = {2: _store_time_zones}
"""By version, what leads there from the version before. All needed steps run in one transaction."""


def prepare(database: Database, version: int = SCHEMA_VERSION, migrations: Migrations = MIGRATIONS) -> None:
    """Create or migrate the schema; one query if there is nothing to do.

    Raises `SchemaTooNewError` for a database of a newer program, `StoreUnavailableError` if it cannot be used.
    """
    if database.is_sqlite:
        _create_folder(database)
    found = _found(database)
    if found is None:
        if database.is_sqlite:
            database.enter_wal_mode()
        with database.write() as connection:
            advisory_lock(connection, SCHEMA)
            if not sa.inspect(connection).has_table(store_schema.name):
                metadata.create_all(connection)
                connection.execute(store_schema.insert().values(version=version))
        found = _found(database)
    if found is not None and found < version:
        found = _migrate(database, version, migrations)
    if found != version:
        raise SchemaTooNewError(
            f"The database {database.shown} has schema {found}; this program knows {version}. It was written by a newer"
            " version: update this one, or point COLLECTION_DATABASE_URL at another database. Nothing was changed."
        )


def _create_folder(database: Database) -> None:
    try:
        database.path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailableError(
            f"The folder {database.path.parent} of the database cannot be made: {error.strerror}."
            " Choose another place with COLLECTION_DATABASE_URL, or give this user the right to write there."
        ) from error


def _found(database: Database) -> int | None:
    with database.read() as connection:
        try:
            return connection.execute(sa.select(store_schema.c.version)).scalar()
        except (sa.exc.OperationalError, sa.exc.ProgrammingError) as error:
            if "no such table" in str(error.orig) or getattr(error.orig, "sqlstate", None) == "42P01":
                return None
            raise


def _migrate(database: Database, version: int, migrations: Migrations) -> int:
    with database.write() as connection:
        advisory_lock(connection, SCHEMA)
        found: int = connection.execute(sa.select(store_schema.c.version)).scalar_one()
        for step in range(found + 1, version + 1):
            migrations[step](connection)
        if found < version:
            connection.execute(store_schema.update().values(version=version))
        return max(found, version)
