"""Dagster runs as launches of jobs: who asked for them, which are alive, and whether a holder of a job is gone."""

from __future__ import annotations

from collections.abc import Container

import dagster as dg

from collection_pipeline.engine.holders import Holder, process_is_gone, this_host, this_process
from collection_pipeline.engine.planning.flight import PlannedRun
from collection_pipeline.engine.planning.graph import Graph

REQUESTED_BY = "collection/requested_by"
"""Run tag: the schedule, sensor, executor or command that launched the run. Absent when a person did so in Dagster."""

CARRYING_ON = "carry_on_executor"
"""The executor's name, and what `REQUESTED_BY` says of the Dagster runs that it goes on with."""

GOES_ON_FROM = "collection/goes_on_from"
"""Run tag: the Dagster run in whose process this one is executed. Terminating that one ends both."""

STEPS_OVER = "collection/steps_over"
"""Run tag: the steps of the Dagster run are through; what its process does now are Dagster runs of their own."""

FETCH = "collection/fetch"
"""Run tag: `missing` has a rerun keep the answers of the newest version and buy only what is missing."""

FETCH_MISSING = "missing"

PROCESS = "collection/process"
"""Run tag: host, pid and start time of the process that executes the run itself, when no launcher watches it."""

WORKER = "collection/worker"
"""Run tag: the same of a process that a launcher started. If all of Dagster is killed with it, nobody else knows."""

PARTITION = "dagster/partition"

RUN_ID = "run_id"
"""Name of the dynamic partitions: one key for each run. Dagster has one set of keys by that name for all projects of an
instance, and pruning takes keys out of it: where several share one, give each a name of its own, here."""

LIVE = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def is_automatic(run: dg.DagsterRun) -> bool:
    """Whether no person asked for this run: re-executions copy the tags of their parent, but a person started them."""
    return REQUESTED_BY in run.tags and run.parent_run_id is None


def process_tag() -> str:
    """This process as the `PROCESS` tag has it."""
    host, pid, started = this_process()
    return f"{host}:{pid}:{started}"


def name_worker(instance: dg.DagsterInstance, run: dg.DagsterRun, executor: str) -> None:
    """Tag the run with this process, if it executes all of it: whoever looks later can tell that it is gone."""
    if executor in (CARRYING_ON, dg.in_process_executor.name) and PROCESS not in run.tags and run.run_id not in _named:
        instance.add_run_tags(run.run_id, {WORKER: process_tag()})
        _named.add(run.run_id)


_named: set[str] = set()
"""The runs that this process has tagged; a worker has one."""


def is_over(instance: dg.DagsterInstance, holder: Holder, live: Container[str] = ()) -> bool:
    """Whether the attempt that holds a job can no longer finish: its process is gone, or its Dagster run is over.

    `live` are Dagster runs that are known not to be.
    """
    if process_is_gone(holder):
        return True
    if holder.dagster_run_id in live:
        return False
    run = instance.get_run_by_id(holder.dagster_run_id)
    return run is not None and run.is_finished


def is_out_of_sight(instance: dg.DagsterInstance, holder: Holder) -> bool:
    """Whether nothing can be known about a holder: it has no process on this host, and this instance does not know its
    Dagster run (it is another one's, or was deleted), or nothing but a process elsewhere would report its end."""
    if holder.pid is not None and holder.host == this_host():
        return False
    run = instance.get_run_by_id(holder.dagster_run_id)
    if run is None:
        return True
    executing = _process(run, PROCESS)
    return executing is not None and executing.host != this_host()


def end_unwatched(instance: dg.DagsterInstance, dagster_run_id: str) -> None:
    """Report a run as failed to Dagster, if no launcher would: for whoever knows that its process is gone."""
    run = instance.get_run_by_id(dagster_run_id)
    if run is not None and not run.is_finished and _process(run, PROCESS) is not None:
        _report_gone(instance, run)


def live_runs(instance: dg.DagsterInstance, graph: Graph) -> dict[str, list[PlannedRun]]:
    """The Dagster runs that are not over, by the run_id they work for.

    One query, and one more for each live run without a selection until its plan is known.
    A run whose executing process died without a launcher to notice is reported to Dagster as failed and left out.
    """
    planned: dict[str, list[PlannedRun]] = {}
    live = instance.get_runs(dg.RunsFilter(statuses=LIVE))
    for over in _plans.keys() - {run.run_id for run in live}:
        _plans.pop(over, None)
    for run in live:
        if run.tags.get(PARTITION) is None or _abandoned(instance, run) or STEPS_OVER in run.tags:
            continue
        jobs = _assets_of(instance, run) & graph.jobs.keys()
        if jobs:
            planned.setdefault(run.tags[PARTITION], []).append(PlannedRun(run.run_id, jobs))
    return planned


def _assets_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> frozenset[str]:
    """The assets that a Dagster run is to materialize: as selected, else as Dagster noted when it was created."""
    if run.asset_selection:  # a whole job has none, or an empty one
        return frozenset(key.to_user_string() for key in run.asset_selection)
    if run.run_id in _plans:
        return _plans[run.run_id]
    noted = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED)
    keys = (entry.get_dagster_event().asset_key for entry in noted)
    plan = frozenset(key.to_user_string() for key in keys if key is not None)
    # Dagster creates the run before it notes the plan, asset by asset.
    if run.status is not dg.DagsterRunStatus.NOT_STARTED:
        _plans[run.run_id] = plan
    return plan


_plans: dict[str, frozenset[str]] = {}
"""What live Dagster runs are to materialize, by their ids. A plan never changes, and every look needs it."""


def _abandoned(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    executing = _process(run, PROCESS) or _process(run, WORKER)
    if executing is None or not process_is_gone(executing):
        return False
    _report_gone(instance, run)
    return True


def _process(run: dg.DagsterRun, name: str) -> Holder | None:
    """The process that a tag of the run names."""
    tag = run.tags.get(name)
    if tag is None:
        return None
    host, pid, started = tag.rsplit(":", 2)
    return Holder(run.run_id, host, int(pid), float(started))


def _report_gone(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    # Neither call is a documented API of Dagster's; cli/test_instance.py watches both.
    instance.report_run_failed(run, "The process that executed this run is gone.")
    # The daemon would give its places in the pools back; where none runs, the next run would wait for them for ever.
    instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
