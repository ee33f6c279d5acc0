"""The key, the database password and the alert addresses appear in nothing that faulty runs leave behind."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

from collection_pipeline.sources.emulator import EmulatorOptions, embedded
from collection_pipeline.sources.emulator.account import Account
from collection_pipeline_tests import children
from collection_pipeline_tests.failures.desk import RUN, Desk
from collection_pipeline_tests.failures.echo import echoing
from collection_pipeline_tests.failures.surroundings import impatient
from deploy.postgres.server import PostgresServer

KEY = "sk-MarkedKey0123456789"
TOKEN = "MarkedToken+42"
ALERTS = f"json://someone:{quote(TOKEN, safe='')}@127.0.0.1:1/hook"
"""A channel that nobody answers."""


@pytest.fixture
def desk(tmp_path: Path, postgres_url: str) -> Iterator[Desk]:
    (tmp_path / "queries.toml").write_text('[[query]]\nq = "anything"\n', "utf-8")
    with echoing() as base_url:
        secret = {"SERPBASE_API_KEY": KEY, "ALERT_URLS": ALERTS}
        yield Desk(tmp_path, postgres_url, base_url, Account(), environment=secret)


@pytest.mark.long
def test_faulty_runs_leave_no_secret_behind(desk: Desk, postgres_server: PostgresServer) -> None:
    with_an_alert_address_that_cannot_be_read(desk)
    echoed_by_the_source(desk)
    refused_by_the_source(desk)
    without_a_database(desk, postgres_server)

    left = dict(everything(desk))
    assert any(path.endswith("report.html") for path in left)
    assert any(path.endswith("index.db") for path in left), "Dagster's event log"
    assert b"[API key removed]" in left["table detail_pages_rows"]
    assert b"was not delivered" in b"".join(left.values())
    secrets = [KEY, postgres_server.password, TOKEN]
    assert [(path, secret) for path, content in left.items() for secret in found_in(content, secrets)] == []


def with_an_alert_address_that_cannot_be_read(desk: Desk) -> None:
    said = desk.collect("run", RUN, expect=2, ALERT_URLS=f"{ALERTS}, slack://{TOKEN}")
    assert "ALERT_URLS: address 2 is not one that apprise knows" in said


def echoed_by_the_source(desk: Desk) -> None:
    """In places, errors, request ids, redirects and broken answers."""
    desk.collect("run", RUN, "--json")
    desk.collect("status", RUN, "--json")
    desk.collect("why", "daily_report", RUN)
    assert desk.one("SELECT count(DISTINCT kind) FROM requests WHERE job_id = 'detail_pages'") >= 4


def refused_by_the_source(desk: Desk) -> None:
    """A key that is not valid, which alerts by channels that fail, and one that no header can carry."""
    with embedded(EmulatorOptions()) as emulator:
        said = desk.collect(
            "run", "2026-11-30", expect=1, SERPBASE_BASE_URL=emulator.base_url, SERPBASE_API_KEY=f"invalid-{KEY}"
        )
    assert "unauthorized" in said
    desk.collect("run", "2026-11-28", "--only", "search_results", expect=2, SERPBASE_API_KEY=f"{KEY} {KEY}")


def without_a_database(desk: Desk, server: PostgresServer) -> None:
    """The server goes away in the middle of a job, and is away at the next start."""
    process, output = desk.start("rerun", "detail_pages", RUN, prepare=impatient, COLLECTION_RATE_PER_S="1")
    while not desk.one("SELECT count(*) FROM jobs WHERE status = 'running'"):
        assert process.is_alive(), output.read_text()
        time.sleep(0.05)
    server.stop("immediate")
    assert children.ended(process) == 1, output.read_text()
    desk.collect("run", RUN, expect=2)
    server.start()


def everything(desk: Desk) -> Iterator[tuple[str, bytes]]:
    """All files below the folder (what was said, reports, Dagster's databases and compute logs), and all tables."""
    for path in desk.folder.rglob("*"):
        if path.is_file():
            yield str(path), path.read_bytes()
    with psycopg.connect(desk.database_url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        for (table,) in tables:
            # bytea as text is hexadecimal; the stored answers are read as what they are.
            rows = connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table))).fetchall()
            yield f"table {table}", b"\n".join(as_bytes(value) for row in rows for value in row)


def as_bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def found_in(content: bytes, secrets: Sequence[str]) -> list[str]:
    """The secrets that are there."""
    return [secret for secret in secrets if any(form in content for form in forms_of(secret))]


def forms_of(secret: str) -> list[bytes]:
    """As it is, quoted for a URL, in base64."""
    return [secret.encode(), quote(secret, safe="").encode(), base64.b64encode(secret.encode()).rstrip(b"=")]
