"""What every test file may ask for: a clean environment, databases, a PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from collection_pipeline.settings import settings
from deploy.postgres.server import PostgresServer

MEMORY = Path("/dev/shm")
ROOM = 2 << 30
"""Bytes; the whole suite takes less than half of it: 0.2 GB, and 0.1 GB for the PostgreSQL server of each process."""

SETTINGS_PREFIXES = ("SERPBASE_", "COLLECTION_", "DAGSTER_", "ALERT_URLS")


def pytest_configure() -> None:
    """Put temporary files into memory where that is large enough and programs may be started from there.

    Databases sync all they write, and four processes that do so wait for one disk. What tests write dies with them.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return
    if shutil.disk_usage(MEMORY).free > ROOM and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two a core, where memory is not an issue: half of the time tests wait for a process, a clock or a disk."""
    return min(2 * (os.cpu_count() or 1), 8)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests see neither the settings of whoever runs them nor a `.env` in the folder they are run from."""
    for name in os.environ:
        if name.startswith(SETTINGS_PREFIXES):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    settings.cache_clear()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running server, one for each test process: it starts in about a second, and nothing needs sharing."""
    # Not pytest's temporary folder, which is closed to others, while root's server runs as somebody else.
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = PostgresServer(Path(folder) / "server")
        server.start()
        yield server
        server.stop("immediate")


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of an empty PostgreSQL database."""
    with postgres_server.new_database() as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The address of a SQLite database that does not exist yet."""
    return f"sqlite:///{tmp_path / 'collection.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Both databases in turn: an empty one each."""
    url: str = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
    return url
