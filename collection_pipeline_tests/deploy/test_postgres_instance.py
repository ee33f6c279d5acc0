"""Everything in PostgreSQL: what the one command sets up, and a restart of the server in the middle of a run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import dagster as dg
import psutil
import psycopg
import pytest
import sqlalchemy as sa
import yaml

from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.store import Store
from collection_pipeline.sources.emulator import EmulatorOptions, RunningEmulator, embedded
from collection_pipeline_tests.dagster.servers import end
from deploy.postgres.__main__ import HOME, SCHEMA, environment
from deploy.postgres.server import PostgresServer

ROOT = Path(__file__).parents[2]
RUN = "2026-11-29"
QUERIES = '[[query]]\nq = "airports in Iceland"\ngl = "is"\n'
IN_FLIGHT = 2
PATIENCE_S = 240
SUCCESS = dg.DagsterRunStatus.SUCCESS


@pytest.fixture
def emulator() -> Iterator[RunningEmulator]:
    """Answers slowly, so that there is a middle of a run."""
    with embedded(EmulatorOptions(day=date(2026, 11, 29), latency_ms=200)) as running:
        yield running


@pytest.fixture
def environ(postgres_url: str, emulator: RunningEmulator, tmp_path: Path) -> dict[str, str]:
    """What somebody sets who runs `python -m deploy.postgres`."""
    (tmp_path / "queries.toml").write_text(QUERIES, "utf-8")
    return {
        "PATH": os.environ["PATH"],
        "PYTHONUTF8": "1",
        "COLLECTION_DATABASE_URL": postgres_url,
        "COLLECTION_DATA": str(tmp_path / "data"),
        "COLLECTION_QUERIES": str(tmp_path / "queries.toml"),
        "COLLECTION_CONCURRENCY": str(IN_FLIGHT),
        "SERPBASE_BASE_URL": emulator.base_url,
        "SERPBASE_API_KEY": "key",
    }


def behind_postgres(*command: str) -> list[str]:
    """The command, run by the one that is documented."""
    return [sys.executable, "-m", "deploy.postgres", *command]


@contextmanager
def daemon(environ: dict[str, str], log: Path) -> Iterator[None]:
    """Dagster's daemon, with the code location and the run workers that it starts; in a session of its own."""
    command = behind_postgres(sys.executable, "-m", "dagster._daemon", "run", "-m", "collection_pipeline.definitions")
    with (
        log.open("w") as stream,
        subprocess.Popen(
            command, cwd=ROOT, env=environ, stdout=stream, stderr=stream, start_new_session=True
        ) as process,
    ):
        try:
            yield
        finally:  # all of it: a code server that finds the database gone when a worker ends stays for ever
            end(process)


def until(holds: Callable[[], bool], what: str, log: Path) -> None:
    """Wait for something that other processes do."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not happen:\n{log.read_text()[-8000:]}"
        time.sleep(0.1)


@pytest.fixture
def instance(
    environ: dict[str, str], postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    """The same instance in this process."""
    for name, value in (environ | environment(postgres_url, tmp_path / "data")).items():
        monkeypatch.setenv(name, value)
    with dg.DagsterInstance.from_config(str(HOME)) as instance:
        yield instance


@pytest.mark.long
def test_a_run_survives_a_restart_of_the_server(
    postgres_server: PostgresServer,
    instance: dg.DagsterInstance,
    environ: dict[str, str],
    emulator: RunningEmulator,
    tmp_path: Path,
) -> None:
    from collection_pipeline.definitions import GRAPH

    url = environ["COLLECTION_DATABASE_URL"]
    log = tmp_path / "daemon.log"
    charges = emulator.account.feature_id_charges
    with Store.open(url) as store:
        run_id = RunId.parse(RUN)
        instance.add_dynamic_partitions("run_id", [RUN])
        store.open_run(run_id, ZoneInfo("UTC"), GRAPH, datetime.now(UTC))
        with daemon(environ, log):
            until(lambda: charges.total() >= 4, "the first details", log)
            assert (statuses(store)["search_results"], statuses(store)["detail_pages"]) == ("done", "running")
            assert postgres_server.password not in command_lines()
            postgres_server.stop("immediate")
            postgres_server.start()
            until(lambda: [run.status for run in instance.get_runs()] == [SUCCESS], "the end of the run", log)
        assert set(statuses(store).values()) == {"done"}
    with psycopg.connect(url) as connection:
        (places,) = connection.execute("SELECT count(*) FROM detail_pages WHERE run_id = %s", [RUN]).fetchone() or (0,)
    assert len(charges) == places > 4
    assert charges.total() - places <= IN_FLIGHT
    assert {path.suffix for path in HOME.rglob("*") if path.is_file()} <= {".py", ".pyc", ".yaml"}


def command_lines() -> str:
    """Of all processes: everybody on a machine may read them."""
    return "\n".join(" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))


def statuses(store: Store) -> dict[str, str]:
    return {job.job_id: job.status for job in store.run_view(RUN).jobs}


class TestTheCommand:
    """`python -m deploy.postgres`: what it sets, what it asks for, what it does not let out."""

    def test_gives_dagster_a_schema_of_its_own_in_the_same_database(self, postgres_url: str, tmp_path: Path) -> None:
        made = environment(postgres_url + "?application_name=here", tmp_path)

        engine = sa.create_engine(made["DAGSTER_POSTGRES_URL"])
        with engine.connect() as connection:
            assert connection.dialect.driver == "psycopg2"
            found = connection.execute(sa.text("SELECT current_schema(), current_setting('application_name')")).one()
            assert tuple(found) == (SCHEMA, "here")
        engine.dispose()
        with Store.open(made["COLLECTION_DATABASE_URL"]) as store:
            assert store.open_runs() == []

    def test_ends_as_the_command_ends(self, environ: dict[str, str]) -> None:
        ended = run("sh", "-c", "echo $DAGSTER_HOME; exit 3", environ=environ)
        assert (ended.returncode, ended.stdout) == (3, f"{HOME}\n")

    def test_says_what_is_wrong_without_the_password(self, environ: dict[str, str]) -> None:
        ended = run("true", environ=environ | {"COLLECTION_DATABASE_URL": "postgresql://me:s3cret@127.0.0.1:1/nowhere"})
        assert ended.returncode == 2
        assert "port 1 failed" in ended.stderr
        assert "s3cret" not in ended.stderr
        assert "Traceback" not in ended.stderr

    def test_differs_from_the_instance_on_one_machine_in_where_things_lie_and_in_nothing_else(self) -> None:
        here, there = (yaml.safe_load((folder / "dagster.yaml").read_text("utf-8")) for folder in (ROOT, HOME))
        places = {"storage", "compute_logs", "local_artifact_storage"}
        assert {name for name in here | there if here.get(name) != there.get(name)} == places


def run(*command: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        behind_postgres(*command),
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
