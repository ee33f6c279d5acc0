"""Any graph, any order of events: random worlds in which everything goes wrong, and what holds all the same.

Safety (what is read is usable, young enough and never of a later run; one attempt at a time; no request for what is in
flight), liveness (when nothing is in flight, nothing waits), quiescence (left alone, every run settles and stays so)
and convergence (heal the faults and rerun what failed: everything stands on its own run's newest data).
"""

from __future__ import annotations

from datetime import timedelta
from typing import get_args

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from collection_pipeline.engine.planning.edges import Policy
from collection_pipeline.engine.planning.graph import Graph, Job
from collection_pipeline.engine.planning.lateness import is_late
from collection_pipeline.engine.planning.state import Artifact
from collection_pipeline_tests.engine.builders import NINE, THREE_DAYS, edge, job
from collection_pipeline_tests.engine.model import DagsterRun, Outcome, World, place

NAMES = "abcde"
RUN_IDS = ("2026-11-25", "2026-11-27", "2026-11-28", "2026-11-29", "2026-11-29T0600", "2026-11-29T0600.2", "2026-11-30")


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Up to five jobs with any policies; hard edges on jobs that may be skipped are made optional."""
    jobs: list[Job] = []
    skippable: set[str] = set()
    for name in NAMES[: draw(st.integers(2, len(NAMES)))]:
        edges = []
        for upstream in (each.job_id for each in jobs):
            policy: Policy | None = draw(st.sampled_from((None, *get_args(Policy))))
            if policy == "hard" and upstream in skippable:
                policy = "optional"
            if policy == "skip":
                skippable.add(name)
            if policy is not None:
                edges.append(edge(upstream, policy, draw(st.sampled_from(("follow", "follow", "pin")))))
        jobs.append(job(name, *edges, shelf_life=THREE_DAYS, deadline=draw(st.sampled_from((None, NINE)))))
    return Graph.build(jobs)


OUTCOMES: tuple[Outcome, ...] = ("succeeded", "succeeded", "succeeded", "unusable", "failed")


class Propagation(RuleBasedStateMachine):
    world: World
    sensor_is_on: bool

    @initialize(graph=graphs(), first=st.sampled_from(RUN_IDS), sensor_is_on=st.booleans())
    def open_the_world(self, graph: Graph, first: str, sensor_is_on: bool) -> None:
        self.world = World(graph)
        self.world.launch(first, graph.jobs, automatic=True)
        self.sensor_is_on = sensor_is_on

    # events

    @rule(run_id=st.sampled_from(RUN_IDS), automatic=st.booleans())
    def a_run_is_launched_as_one_chain(self, run_id: str, automatic: bool) -> None:
        if not (automatic and run_id in self.world.rows):
            self.world.launch(run_id, self.world.graph.jobs, automatic=automatic)

    @rule(data=st.data())
    def somebody_reruns_a_job(self, data: st.DataObject) -> None:
        run_id = data.draw(st.sampled_from(sorted(self.world.rows)), "run_id")
        job_id = data.draw(st.sampled_from(list(self.world.graph.jobs)), "job")
        self.world.rows[run_id][job_id].edition += data.draw(st.integers(0, 1), "other data")
        self.world.launch(run_id, [job_id], automatic=False)

    @rule(turns=st.lists(st.tuples(st.integers(0, 99), st.sampled_from(OUTCOMES)), min_size=4, max_size=16))
    def dagster_goes_on(self, turns: list[tuple[int, Outcome]]) -> None:
        for choice, outcome in turns:
            moves = [*self.running(), *self.startable()]
            if not moves:
                return
            run, job_id = moves[choice % len(moves)]
            if job_id in run.steps:
                self.world.finish(run, job_id, outcome)
            else:
                self.start(run, job_id)
            if self.sensor_is_on and choice % 3:
                self.tick(run.run_id)

    @rule()
    def the_sensor_ticks(self) -> None:
        for run_id in list(self.world.rows):
            self.tick(run_id)

    @precondition(lambda self: self.world.dagster_runs)
    @rule(data=st.data())
    def a_dagster_run_is_killed(self, data: st.DataObject) -> None:
        run_id = data.draw(st.sampled_from(sorted(self.world.dagster_runs)), "Dagster run")
        self.world.kill(self.world.dagster_runs[run_id])

    @precondition(lambda self: self.standing())
    @rule(data=st.data())
    def somebody_retracts_an_artifact(self, data: st.DataObject) -> None:
        self.world.retract(*data.draw(st.sampled_from(self.standing()), "artifact"))

    @rule(hours=st.sampled_from((1, 9, 24)))
    def time_passes(self, hours: int) -> None:
        self.world.pass_time(timedelta(hours=hours))

    def running(self) -> list[tuple[DagsterRun, str]]:
        return [
            (run, job_id)
            for run in self.world.dagster_runs.values()
            for job_id, step in run.steps.items()
            if step == "running"
        ]

    def startable(self) -> list[tuple[DagsterRun, str]]:
        return [(run, job_id) for run in self.world.dagster_runs.values() for job_id in self.world.startable(run)]

    def standing(self) -> list[tuple[str, str]]:
        return [
            (run_id, job_id)
            for run_id, rows in self.world.rows.items()
            for job_id, row in rows.items()
            if row.standing is not None
        ]

    # safety

    def tick(self, run_id: str) -> DagsterRun | None:
        world = self.world
        before = world.live(run_id)
        rows = {job_id: row.outcome for job_id, row in world.rows[run_id].items()}
        requested = world.tick(run_id)
        for job_id in requested.job_ids if requested else ():
            assert rows[job_id] != "running", "requested what is running"
            if not is_late(world.graph[job_id], world.opened[run_id], world.now):
                assert not any(world.startable(run).count(job_id) for run in before), "requested what is about to start"
        return requested

    def start(self, run: DagsterRun, job_id: str) -> None:
        world = self.world
        before = world.rows[run.run_id][job_id]
        held, attempted = before.current, before.attempted
        if world.start(run, job_id) != "started":
            return
        late = is_late(world.graph[job_id], world.opened[run.run_id], world.now)
        inputs = world.rows[run.run_id][job_id].attempted or {}
        assert list(inputs) == list(world.graph[job_id].upstreams)
        followed = False
        for each in world.graph[job_id].edges:
            row, read = world.rows[run.run_id][each.upstream], inputs[each.upstream]
            followed |= (
                each.on_rerun == "follow"
                and read is not None
                and not read.same_data((attempted or {}).get(each.upstream))
            )
            if row.outcome == "running":
                assert late
                assert each.policy in ("degrade", "optional"), "read beside a running upstream"
            if row.standing is not None:
                assert read == row.standing.artifact, "did not read the newest usable artifact of its run"
            elif read is None:
                assert each.policy == "optional", "only an optional input may be missing"
            else:
                assert each.policy == "degrade"
                assert place(read.run_id) < place(run.run_id), "read the future"
                assert read == world.rows[read.run_id][read.job_id].current, "read what is not usable"
                assert world.moment(run.run_id) - read.as_of <= THREE_DAYS.fail, "read what is too old"
        if run.automatic and held is not None and attempted is not None:
            assert followed, "rebuilt an artifact although no edge that follows has other data"

    @invariant()
    def what_stands_on_older_data_says_so(self) -> None:
        for run_id, rows in self.world.rows.items():
            for row in rows.values():
                for version in row.versions:
                    older = any(each and (each.run_id != run_id or each.degraded) for each in version.inputs.values())
                    assert version.artifact.degraded == older or version.artifact.as_of < self.world.moment(run_id)

    @invariant()
    def nothing_that_follows_stands_on_retracted_data(self) -> None:
        for rows in self.world.rows.values():
            for job_id, row in rows.items():
                follows = [each.upstream for each in self.world.graph[job_id].edges if each.on_rerun == "follow"]
                for version in row.versions:
                    read = [version.inputs[upstream] for upstream in follows] if version.stands else []
                    assert not any(each and self.is_retracted(each) for each in read)

    def is_retracted(self, artifact: Artifact) -> bool:
        versions = self.world.rows[artifact.run_id][artifact.job_id].versions
        return any(version.artifact == artifact and version.retracted for version in versions)

    @invariant()
    def a_job_is_failed_only_if_it_was_attempted(self) -> None:
        for run_id in self.world.rows:
            for decision in self.world.plan(run_id).decisions.values():
                assert decision.status != "failed" or self.world.rows[run_id][decision.job_id].attempted is not None

    @invariant()
    def nothing_waits_while_nothing_is_in_flight(self) -> None:
        for run_id in self.world.rows:
            if not self.world.live(run_id):
                decided = self.world.plan(run_id)
                skips = any(decision.skips for decision in decided.decisions.values())
                assert decided.settled or decided.requests or skips

    # quiescence and convergence

    def drain(self) -> None:
        """Let Dagster and the sensor go on by themselves, with every fault healed, until all runs are settled."""
        launched = sum(len(run.job_ids) for run in self.world.dagster_runs.values())
        for _ in range(2 * launched + 60 * len(self.world.rows)):
            if step := self.running():
                self.world.finish(*step[0], "succeeded")
            elif step := self.startable():
                self.start(*step[0])
            elif not [run for run_id in self.world.rows if (run := self.tick(run_id))]:
                break
        else:
            raise AssertionError("never comes to rest")
        for run_id in self.world.rows:
            assert self.world.plan(run_id).settled
            assert self.tick(run_id) is None, "a settled run causes requests"

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.drain()
        for run_id in sorted(self.world.rows, key=place):
            for job_id, row in self.world.rows[run_id].items():
                if row.outcome == "failed":
                    self.world.launch(run_id, [job_id], automatic=False)
                    self.drain()
        for run_id, rows in self.world.rows.items():
            for decision in self.world.plan(run_id).decisions.values():
                assert decision.status == "done"
                standing = rows[decision.job_id].standing
                assert standing is not None
                for each in decision.edges:
                    newest = rows[each.edge.upstream].standing
                    assert newest is not None
                    whole = newest.artifact.same_data(standing.inputs[each.edge.upstream])
                    assert whole or (each.edge.on_rerun == "pin" and decision.outdated)


TestPropagation = Propagation.TestCase
TestPropagation.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
