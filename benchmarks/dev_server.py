"""`dagster dev` in a home of its own, with the template's instance configuration, asked over GraphQL as its UI asks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.measuring import ROOT, python
from collection_pipeline.engine.runs.launches import RUN_ID
from deploy.ports import free_port

LOCATION = "collection_pipeline"
REPOSITORY = {"repositoryLocationName": LOCATION, "repositoryName": "__repository__"}

_LAUNCH = """mutation ($launch: ExecutionParams!) {
  launchRun(executionParams: $launch) { __typename ... on PythonError { message } }
}"""
_ADD = """mutation ($repository: RepositorySelector!, $name: String!, $key: String!) {
  addDynamicPartition(repositorySelector: $repository, partitionsDefName: $name, partitionKey: $key) { __typename }
}"""
_START = "mutation ($sensor: SensorSelector!) { startSensor(sensorSelector: $sensor) { __typename } }"
_STOP = "mutation ($id: String) { stopSensor(id: $id) { __typename } }"
_SENSOR = """query ($sensor: SensorSelector!) {
  sensorOrError(sensorSelector: $sensor) { __typename ... on Sensor { id sensorState { ticks(limit: 1) { tickId } } } }
}"""


@dataclass
class DevServer:
    """A running `dagster dev`."""

    url: str
    process: psutil.Process

    def add_partition(self, run_id: str) -> None:
        """Add a run_id, as the dialogue in the UI does."""
        self.ask(_ADD, repository=REPOSITORY, name=RUN_ID, key=run_id)

    def launch(self, job_ids: Sequence[str], run_id: str) -> None:
        """Materialize assets of one run_id, as the button in the UI does."""
        selector = {**REPOSITORY, "pipelineName": "collection_job", "assetSelection": [{"path": [j]} for j in job_ids]}
        tags = [{"key": "dagster/partition", "value": run_id}]
        launch = {"selector": selector, "executionMetadata": {"tags": tags}, "runConfigData": {}, "mode": "default"}
        answer = self.ask(_LAUNCH, launch=launch)["launchRun"]
        assert answer["__typename"] == "LaunchRunSuccess", answer

    def sensor(self, *, on: bool) -> None:
        """Start or stop the propagation sensor."""
        self.ask(_START, sensor=self._sensor) if on else self.ask(_STOP, id=self._sensor_state()["id"])

    def ticked(self) -> bool:
        """Whether the sensor ticked at least once."""
        return bool(self._sensor_state()["sensorState"]["ticks"])

    def cpu_s(self) -> float:
        """Processor time of all its processes so far, with that of their ended children."""
        used = 0.0
        for process in (self.process, *self.process.children(recursive=True)):
            try:
                used += sum(process.cpu_times()[:4])
            except psutil.NoSuchProcess:
                continue
        return used

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """The data of a GraphQL answer."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            said: dict[str, Any] = json.load(answer)
        assert "errors" not in said, said
        data: dict[str, Any] = said["data"]
        return data

    @property
    def _sensor(self) -> dict[str, str]:
        return {**REPOSITORY, "sensorName": "propagation_sensor"}

    def _sensor_state(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask(_SENSOR, sensor=self._sensor)["sensorOrError"]
        assert found["__typename"] == "Sensor", found
        return found


def until(holds: Callable[[], bool], *, within_s: float, every_s: float = 0.02) -> float:
    """Wait until something holds; returns the moment (seconds since the epoch) at which it was seen to."""
    give_up = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > give_up:
            raise TimeoutError(f"not within {within_s:.0f} s")
        time.sleep(every_s)
    return time.time()


@contextmanager
def dev_server(environ: Mapping[str, str]) -> Iterator[DevServer]:
    """Start it, wait until its sensor ticks, and end it with all its processes."""
    home = Path(environ["DAGSTER_HOME"])
    shutil.copy(ROOT / "workspace.yaml", home)
    port = free_port()
    command = python("-m", "dagster", "dev", "--port", str(port), "--log-level", "warning")
    with (home / "dev.log").open("wb") as log:
        # A session of its own, with the signals as an interactive shell leaves them: it then ends as asked.
        process = subprocess.Popen(
            command,
            cwd=home,
            env=environ,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=_default_signals,  # noqa: PLW1509 - before any thread is started
        )
    server = DevServer(f"http://127.0.0.1:{port}", psutil.Process(process.pid))
    try:
        until(lambda: _answers(server), within_s=120, every_s=0.5)
        yield server
    finally:
        everything = [*server.process.children(recursive=True), server.process]
        process.send_signal(signal.SIGINT)
        _, alive = psutil.wait_procs(everything, timeout=20)
        for left in alive:
            left.kill()
        process.wait()


def _answers(server: DevServer) -> bool:
    try:
        return server.ticked()
    except (OSError, AssertionError):
        return False


def _default_signals() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def prepared(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with a Dagster home as the template configures it."""
    home = Path(environ["DAGSTER_HOME"])
    home.mkdir(exist_ok=True)
    shutil.copy(ROOT / "dagster.yaml", home)
    return {**environ, "PATH": os.environ["PATH"]}
