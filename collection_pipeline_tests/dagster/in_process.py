"""Dagster without its processes: a real instance on disk, the real sensor, every run executed in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dagster as dg
import sqlalchemy as sa

from collection_pipeline.automation import collection_job, daily_schedule, propagation_sensor
from collection_pipeline.engine.collection import Collection
from collection_pipeline.engine.jobs.asset import COLLECTION_RESOURCE
from collection_pipeline.engine.planning.state import Artifact
from collection_pipeline.engine.run_ids import RunId
from collection_pipeline.engine.runs.launches import REQUESTED_BY, RUN_ID
from collection_pipeline.engine.runs.propagation import START_GRACE
from collection_pipeline.engine.runs.standing import standing
from collection_pipeline.engine.store import InputView, JobView, RunView, Store
from collection_pipeline_tests.dagster.script import Script, Turn
from collection_pipeline_tests.dagster.small_collection import assets, definitions, summary_of_search

RUN_KEY = "dagster/run_key"

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}

Launched = dg.ExecuteInProcessResult | dg.JobExecutionResult

# Events in one database, as on a server: by default there is one for each run besides, made and migrated anew.
INSTANCE = """\
telemetry:
  enabled: false
run_storage:
  module: dagster._core.storage.runs
  class: SqliteRunStorage
  config: {{base_dir: {folder}}}
event_log_storage:
  module: dagster._core.storage.event_log
  class: ConsolidatedSqliteEventLogStorage
  config: {{base_dir: {folder}}}
schedule_storage:
  module: dagster._core.storage.schedules
  class: SqliteScheduleStorage
  config: {{base_dir: {folder}}}
compute_logs:
  module: dagster._core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
"""


@dataclass
class InProcess:
    """The small collection, a real instance, and the ways to start something in it."""

    script: Script
    instance: dg.DagsterInstance
    defs: dg.Definitions
    opened: ExitStack
    carries_on: bool = False
    """Whether launches have the executor of the template, as in a run worker; else nothing starts but what is launched,
    and a test sees what the sensor would do."""

    def __post_init__(self) -> None:
        self.opened.callback(self.close)

    def close(self) -> None:
        self.store.close()

    @property
    def collection(self) -> Collection:
        assert self.defs.resources is not None
        found = self.defs.resources[COLLECTION_RESOURCE]
        assert isinstance(found, Collection)
        return found

    @property
    def store(self) -> Store:
        return self.collection.store

    @cached_property
    def repository(self) -> dg.RepositoryDefinition:
        return self.defs.get_repository_def()

    # what happens

    def tell(self, job_id: str, run_id: str, **turn: Any) -> None:
        """Have a job do something else than succeed with twenty rows; see `Turn`."""
        self.script.tell(job_id, run_id, Turn(**turn))

    def at(self, instant: str) -> None:
        """Set the clock, in UTC."""
        self.script.set_clock(datetime.fromisoformat(instant).replace(tzinfo=UTC))

    def morning(self, run_id: str, until_settled: bool = True) -> None:
        """What happens on a day: the schedule opens the run at six, and the sensor sees to the rest."""
        self.at(f"{run_id}T06:00")
        context = dg.build_schedule_context(
            instance=self.instance,
            scheduled_execution_time=self.script.now(),
            repository_def=self.repository,
            resources={COLLECTION_RESOURCE: self.collection},
        )
        ticked = daily_schedule.evaluate_tick(context)
        for request in ticked.run_requests or ():
            self._execute(request)
        if until_settled:
            self.settle()

    def open(self, run_id: str, ago: timedelta = START_GRACE) -> None:
        """Open a run as the schedule does, but so long ago that the sensor is to start it."""
        self.instance.add_dynamic_partitions(RUN_ID, [run_id])
        collection = self.collection
        self.store.open_run(RunId.parse(run_id), collection.timezone, collection.graph, collection.now() - ago)

    def evaluate(self) -> Sequence[dg.RunRequest]:
        """What one tick of the sensor requests now."""
        return list(self._evaluate().run_requests or ())

    def tick_text(self) -> str | None:
        """What a tick that requests nothing says in the UI."""
        found: str | None = self._evaluate().skip_message
        return found

    def _evaluate(self) -> Any:
        context = dg.build_sensor_context(
            instance=self.instance,
            repository_def=self.repository,
            instance_ref=self.instance.get_ref(),
            resources={COLLECTION_RESOURCE: self.collection},
        )
        return propagation_sensor.evaluate_tick(context)

    def tick(self) -> list[tuple[str, tuple[str, ...]]]:
        """One tick of the sensor; executes what it requests. Returns (run_id, jobs) of each request."""
        requests = self.evaluate()
        for request in requests:
            self._execute(request)
        return [(request.partition_key or "", jobs_of(request)) for request in requests]

    def settle(self) -> list[tuple[str, tuple[str, ...]]]:
        """Ticks until one requests nothing."""
        requested = []
        while ticked := self.tick():
            requested += ticked
        return requested

    def launch(
        self,
        run_id: str,
        *jobs: str,
        job_name: str = collection_job.name,
        tags: Mapping[str, str] | None = None,
    ) -> Launched:
        """What the button in the UI does: jobs of a run (all if none are named), with no tags of ours."""
        self.instance.add_dynamic_partitions(RUN_ID, [run_id])
        if self.carries_on:
            summary = "summary" in self.collection.graph
            where = {"folder": str(self.script.folder), "job_name": job_name, "summary": summary}
            job = dg.build_reconstructable_job(__name__, job_in.__name__, reconstructable_kwargs=where)
            with dg.execute_job(
                job,
                self.instance,
                run_config=QUIET,
                tags={**(tags or {}), "dagster/partition": run_id},
                asset_selection=[dg.AssetKey(job_id) for job_id in jobs] or None,
            ) as done:
                return done
        return self.defs.resolve_job_def(job_name).execute_in_process(
            run_config=QUIET,
            instance=self.instance,
            partition_key=run_id,
            asset_selection=[dg.AssetKey(job_id) for job_id in jobs] or None,
            tags=tags,
            raise_on_error=False,
        )

    @contextmanager
    def in_background(self, run_id: str, *jobs: str) -> Iterator[str]:
        """Launch jobs in a thread, the last of which the script holds; by the end of the block it has to be released.

        Gives the Dagster run's id.
        """
        job_id = jobs[-1]
        with ThreadPoolExecutor(1) as thread:
            launched = thread.submit(self.launch, run_id, *jobs)
            self._await_start(job_id, run_id, launched)
            holder = self.job(job_id, run_id).holder
            assert holder is not None
            yield holder.dagster_run_id
            launched.result()

    def _await_start(self, job_id: str, run_id: str, launched: Future[Any]) -> None:
        while not self.script.starts(job_id, run_id):
            assert not launched.done(), f"{job_id} of {run_id} ended without having started"
            time.sleep(0.01)

    def changed(self, *jobs: dg.AssetsDefinition) -> InProcess:
        """The same instance and store after somebody changed the code."""
        return InProcess(self.script, self.instance, definitions(jobs, self.script), self.opened)

    def carrying_on(self) -> InProcess:
        """The same instance and store, and launches that go on with what they make due."""
        return replace(self, carries_on=True)

    def with_summary(self) -> InProcess:
        """The same instance and store with a fifth job."""
        return self.changed(*assets(self.script), summary_of_search(self.script))

    def _execute(self, request: dg.RunRequest) -> None:
        """As the daemon would: a run key is used once."""
        if request.run_key and self.instance.get_runs(dg.RunsFilter(tags={RUN_KEY: request.run_key}), limit=1):
            return
        assert request.partition_key is not None
        self.launch(
            request.partition_key,
            *jobs_of(request),
            tags={**request.tags, RUN_KEY: request.run_key or ""},
        )

    # what is then the case

    def view(self, run_id: str) -> RunView:
        return self.store.run_view(run_id)

    def job(self, job_id: str, run_id: str) -> JobView:
        return next(job for job in self.view(run_id).jobs if job.job_id == job_id)

    def statuses(self, run_id: str) -> dict[str, str]:
        """The state table of a run, as `SELECT job_id, status FROM jobs` has it."""
        return {job.job_id: job.status for job in self.view(run_id).jobs}

    def current(self, job_id: str, run_id: str) -> Artifact:
        view = self.job(job_id, run_id).current
        assert view is not None, f"{job_id} of {run_id} has no artifact"
        return view.artifact

    def read(self, job_id: str, run_id: str) -> dict[str, InputView]:
        """What the current artifact of a job was made of, by upstream."""
        view = self.job(job_id, run_id).current
        assert view is not None
        return {each.upstream: each for each in view.inputs}

    def report(self, run_id: str) -> list[str]:
        """The lines of the report's page."""
        view = self.job("daily_report", run_id).current
        assert view is not None
        return str((self.collection.reports / view.files[0]["path"]).read_text()).splitlines()

    def rows(self, job_id: str, run_id: str, version: int) -> int:
        """How many rows of a version can be read."""
        query = sa.text(f"SELECT count(*) FROM {job_id}_rows WHERE run_id = :run_id AND version = :version")
        with self.store.database.read() as connection:
            return int(connection.execute(query, {"run_id": run_id, "version": version}).scalar_one())

    def reason(self, job_id: str, run_id: str) -> str:
        """Why a job's status is what it is, in the words that everybody gets."""
        return standing(self.collection, run_id).explanation.reason(job_id)

    def materializations(self, job_id: str, run_id: str) -> list[dg.AssetMaterialization]:
        """What Dagster keeps of a job's versions in a run, newest first."""
        of = dg.AssetRecordsFilter(asset_key=dg.AssetKey(job_id), asset_partitions=[run_id])
        records = self.instance.fetch_materializations(of, limit=100).records
        return [record.asset_materialization for record in records if record.asset_materialization]

    def materialization(self, job_id: str, run_id: str) -> dg.AssetMaterialization:
        return self.materializations(job_id, run_id)[0]

    def observations(self, job_id: str, run_id: str) -> list[dg.AssetObservation]:
        of = dg.AssetRecordsFilter(asset_key=dg.AssetKey(job_id), asset_partitions=[run_id])
        events = [record.event_log_entry.dagster_event for record in self.instance.fetch_observations(of, 100).records]
        return [event.asset_observation_data.asset_observation for event in events if event]

    def checks(self, job_id: str, run_id: str) -> dict[str, dg.AssetCheckEvaluation]:
        """The verdicts that Dagster keeps for one partition, by check."""
        verdicts = {}
        for run in self.dagster_runs(run_id):
            records = self.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
            for event in (record.get_dagster_event() for record in records):
                verdict = event.asset_check_evaluation_data
                if verdict.asset_key.to_user_string() == job_id and verdict.partition == run_id:
                    verdicts[verdict.check_name] = verdict
        return verdicts

    def log(self, result: Launched) -> list[str]:
        """The messages in the log of a Dagster run, as its page in the UI shows them."""
        return [record.user_message for record in self.instance.all_logs(result.run_id)]

    def dagster_run(self, dagster_run_id: str) -> dg.DagsterRun:
        """A Dagster run as it stands now."""
        found = self.instance.get_run_by_id(dagster_run_id)
        assert found is not None
        return found

    def dagster_runs(self, run_id: str) -> list[dg.DagsterRun]:
        """All Dagster runs of a run_id, oldest first."""
        found = self.instance.get_runs(dg.RunsFilter(tags={"dagster/partition": run_id}))
        return list(reversed(found))

    def requested_by(self, run_id: str) -> list[str]:
        """Who asked for the Dagster runs of a run_id, oldest first."""
        return [run.tags.get(REQUESTED_BY, "a person") for run in self.dagster_runs(run_id)]


@contextmanager
def in_process(folder: Path) -> Iterator[InProcess]:
    """An instance in `folder`, and the small collection around a script that has everything succeed."""
    script = Script(folder)
    _history(folder).mkdir()
    for name, content in _untouched().items():
        (_history(folder) / name).write_bytes(content)
    with _instance(folder) as instance, ExitStack() as opened:
        yield InProcess(script, instance, definitions(assets(script), script), opened)


def _instance(folder: Path) -> dg.DagsterInstance:
    (folder / "dagster.yaml").write_text(INSTANCE.format(folder=_history(folder)))
    return dg.DagsterInstance.from_config(str(folder))


@cache
def _untouched() -> Mapping[str, bytes]:
    """Dagster's databases before the first run, by name. To create and migrate them takes half as long as a run."""
    with TemporaryDirectory() as folder:
        _instance(Path(folder)).dispose()
        return {path.name: path.read_bytes() for path in _history(Path(folder)).iterdir()}


def _history(folder: Path) -> Path:
    return folder / "history"


def job_in(folder: str, job_name: str, *, summary: bool) -> dg.JobDefinition:
    """A job of the small collection in `folder`, with or without the fifth asset, as a worker loads it."""
    script = Script(Path(folder))
    fifth = [summary_of_search(script)] if summary else []
    return definitions([*assets(script), *fifth], script).resolve_job_def(job_name)


def jobs_of(request: dg.RunRequest) -> tuple[str, ...]:
    """The jobs that a request names; none when it means the whole chain."""
    return tuple(key.to_user_string() for key in request.asset_selection or ())


def failures(result: Launched) -> Sequence[str]:
    """What Dagster was told about each failed step."""
    told = []
    for event in result.all_events:
        if event.is_step_failure:
            data = event.step_failure_data.user_failure_data
            told.append(data.description or "" if data else str(event.step_failure_data.error))
    return told
