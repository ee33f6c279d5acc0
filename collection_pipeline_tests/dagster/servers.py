"""Dagster's own processes around the small collection: code server, daemon and web server, each with its own life."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import dagster as dg
import yaml

from collection_pipeline.engine.store import Store, UnknownRunError
from collection_pipeline_tests.dagster.in_process import InProcess
from collection_pipeline_tests.dagster.script import FOLDER, Script
from collection_pipeline_tests.dagster.small_collection import assets, definitions
from deploy.ports import free_port

CHECKOUT = Path(__file__).parents[2]

LOCATION = "small_collection"

PATIENCE_S = 240
"""No figure of anything: a machine with other work to do may take this long, and then something is wrong."""

Server = Literal["code", "daemon", "web"]


@dataclass
class Servers:
    """The processes, and what a browser would say to the web server. `world` looks at the same store and instance."""

    folder: Path
    world: InProcess
    code_port: int = field(default_factory=free_port)
    web_port: int = field(default_factory=free_port)
    processes: dict[Server, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, server: Server) -> None:
        """Start one, in a session of its own and with the signals as a terminal has them."""
        commands: dict[Server, list[str]] = {
            "code": ["dagster", "api", "grpc", "-m", f"{__package__}.definitions", "-p", str(self.code_port)],
            "daemon": ["dagster._daemon", "run", "-w", "workspace.yaml"],
            "web": ["dagster_webserver", "-w", "workspace.yaml", "-h", "127.0.0.1", "-p", str(self.web_port)],
        }
        self.processes[server] = start(commands[server], self.folder, self.folder / f"{server}.log")

    def stop(self, server: Server, how: signal.Signals = signal.SIGTERM) -> None:
        """End one by its id."""
        end(self.processes.pop(server), how)

    def ask(self, query: str, **variables: Any) -> Any:
        """One GraphQL request to the web server; its data. Raises with Dagster's words if it has errors."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        address = f"http://127.0.0.1:{self.web_port}/graphql"
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
                answer = json.load(response)
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    def is_up(self) -> bool:
        """Whether the web server answers and has loaded the code location."""
        with suppress(OSError):
            found = self.ask("{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }")
            return bool(found["repositoriesOrError"].get("nodes"))
        return False

    # what a person does in the browser

    def materialize(self, run_id: str, *jobs: str, job_name: str = "__ASSET_JOB", **tags: str) -> str:
        """The button of the UI: add the partition, launch jobs of it (all if none are named). The Dagster run's id."""
        self.add_partition(run_id)
        selector: dict[str, Any] = {**REPOSITORY, "jobName": job_name}
        if job_name == "__ASSET_JOB":
            selector |= {"assetSelection": self._paths(jobs), "assetCheckSelection": []}
        launched = self.ask(
            LAUNCH,
            params={
                "selector": selector,
                "mode": "default",
                "runConfigData": "{}",
                "executionMetadata": {
                    "tags": [
                        {"key": key, "value": value} for key, value in {"dagster/partition": run_id, **tags}.items()
                    ]
                },
            },
        )["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def add_partition(self, run_id: str) -> None:
        self.ask(ADD_PARTITION, repository=REPOSITORY, key=run_id)

    def backfill(self, run_ids: Sequence[str]) -> str:
        """A backfill of all jobs; its id."""
        started = self.ask(
            BACKFILL,
            params={
                "assetSelection": self._paths(()),
                "partitionNames": list(run_ids),
            },
        )["launchPartitionBackfill"]
        assert started["__typename"] == "LaunchBackfillSuccess", started
        return str(started["backfillId"])

    def cancel(self, dagster_run_id: str) -> None:
        ended = self.ask(TERMINATE, run=dagster_run_id)["terminateRun"]
        assert ended["__typename"] == "TerminateRunSuccess", ended

    def failure(self, dagster_run_id: str) -> str:
        """What Dagster was told when the steps of a run failed."""
        records = self.world.instance.all_logs(dagster_run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
        events = [record.get_dagster_event().step_failure_data for record in records]
        return "\n".join(event.user_failure_data.description or "" for event in events if event.user_failure_data)

    def stale_status(self, job_id: str, run_id: str) -> str:
        """How the UI marks one partition of an asset: FRESH, STALE or MISSING."""
        found = self.ask(STALE, key={"path": [job_id]}, partition=run_id)
        return str(found["assetNodeOrError"]["staleStatus"])

    def _paths(self, jobs: Sequence[str]) -> list[dict[str, list[str]]]:
        return [{"path": [job]} for job in jobs or self.world.collection.graph.jobs]

    # what is waited for

    def await_settled(self, *run_ids: str) -> None:
        """Wait until the planner has nothing left to do in these runs, and Dagster neither."""
        for run_id in run_ids:
            wait_for(partial(self._is_settled, run_id), f"{run_id} to settle", self.describe)

    def await_status(self, job_id: str, run_id: str, status: str) -> None:
        wait_for(
            lambda: self._statuses(run_id).get(job_id) == status, f"{job_id} of {run_id} to be {status}", self.describe
        )

    def await_start(self, job_id: str, run_id: str) -> None:
        """Wait until the body of a job is at work."""
        wait_for(lambda: self.world.script.starts(job_id, run_id) > 0, f"{job_id} of {run_id} to start", self.describe)

    def await_finished(self, dagster_run_id: str) -> dg.DagsterRun:
        """Wait until a Dagster run is over."""

        run = partial(self.world.dagster_run, dagster_run_id)
        wait_for(lambda: run().is_finished, f"Dagster run {dagster_run_id} to end", self.describe)
        return run()

    def _is_settled(self, run_id: str) -> bool:
        store = self.world.store
        opened = has_run(store, run_id)
        return (
            opened
            and store.run_view(run_id).settled_at is not None
            and all(run.is_finished for run in self.world.dagster_runs(run_id))
        )

    def _statuses(self, run_id: str) -> Mapping[str, str]:
        return self.world.statuses(run_id) if has_run(self.world.store, run_id) else {}

    def describe(self) -> str:
        """What is open and what the servers last said, for a test that waited in vain."""
        store = self.world.store
        lines = [f"{run.run_id}: {self.world.statuses(run.run_id)}" for run in store.open_runs()]
        for server in self.processes:
            lines += [f"-- {server}", *(self.folder / f"{server}.log").read_text().splitlines()[-15:]]
        return "\n".join(lines)


REPOSITORY = {"repositoryLocationName": LOCATION, "repositoryName": "__repository__"}

LAUNCH = """mutation ($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""

ADD_PARTITION = """mutation ($repository: RepositorySelector!, $key: String!) {
  addDynamicPartition(repositorySelector: $repository, partitionsDefName: "run_id", partitionKey: $key) {
    __typename } }"""

BACKFILL = """mutation ($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""

TERMINATE = """mutation ($run: String!) { terminateRun(runId: $run) {
  __typename ... on TerminateRunFailure { message } } }"""

STALE = """query ($key: AssetKeyInput!, $partition: String!) { assetNodeOrError(assetKey: $key) {
  ... on AssetNode { staleStatus(partition: $partition) } } }"""


@contextmanager
def servers(folder: Path) -> Iterator[Servers]:
    """All three servers on the template's own instance configuration, with everything they keep in `folder`."""
    configuration = yaml.safe_load((CHECKOUT / "dagster.yaml").read_text())
    (folder / "dagster.yaml").write_text(
        yaml.safe_dump(configuration).replace("data/dagster", str(folder / "data/dagster"))
    )
    script = Script(folder)
    with dg.DagsterInstance.from_config(str(folder)) as instance, ExitStack() as opened:
        world = InProcess(script, instance, definitions(assets(script), script), opened)
        assert world.store.open_runs() == []
        started = Servers(folder, world)
        address = {"host": "127.0.0.1", "port": started.code_port, "location_name": LOCATION}
        (folder / "workspace.yaml").write_text(yaml.safe_dump({"load_from": [{"grpc_server": address}]}))
        try:
            started.start("code")
            wait_for(lambda: _answers(started.code_port), "the code server to answer", started.describe)
            started.start("web")
            started.start("daemon")
            wait_for(started.is_up, "the web server to answer", started.describe)
            yield started
        finally:
            for server in tuple(started.processes):
                started.stop(server)
            world.store.close()


def start(module: Sequence[str], folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start `python -m` in `folder`, in a session of its own and with the signals as a terminal has them."""
    environment = {**os.environ, "DAGSTER_HOME": str(folder), FOLDER: str(folder), "PYTHONPATH": str(CHECKOUT)}
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", *module],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_default_signals,  # noqa: PLW1509 - it takes no lock that a thread might hold
        )


def end(process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGTERM) -> None:
    """End a process by its id, and everything of its session with it."""
    with suppress(ProcessLookupError):
        process.send_signal(how)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def wait_for(happened: Callable[[], bool], what: str, describe: Callable[[], str] = str) -> None:
    """Wait until something is the case that another process brings about."""
    give_up = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < give_up, f"waited in vain for {what}\n{describe()}"
        time.sleep(0.25)


def _default_signals() -> None:
    # A shell that starts tests in the background has SIGINT ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def has_run(store: Store, run_id: str) -> bool:
    """Whether the run was opened."""
    try:
        store.run_view(run_id)
    except UnknownRunError:
        return False
    return True
