"""Every reachable state of every small graph: safe, live, quiescent and convergent.

A run's state is abstracted to what can matter to a decision: each job's status and whether it holds an artifact, and
for each edge what its consumer's last attempt read: nothing, the upstream's current artifact, one superseded since, or
one of an earlier run. So the reachable states are finite without a bound on how many events led there; all are visited.

By itself a tick marks what is skipped and starts what is due, and every attempt ends in new data, equal data or failure
(a kill is one). From outside comes what `Event` lists.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple, get_args

import pytest

from collection_pipeline.engine.planning.edges import OnRerun, Policy
from collection_pipeline.engine.planning.graph import Graph, GraphError
from collection_pipeline.engine.planning.planner import Decision, Plan, plan
from collection_pipeline.engine.planning.state import Artifact, JobState, RunState, Status
from collection_pipeline_tests.engine.builders import AFTER_NINE, BEFORE_NINE, MOMENT, NINE, RUN_ID, artifact, edge, job

Read = Literal["nothing", "current", "superseded", "earlier run"]
Reads = tuple[Read, ...]
"""What the last attempt read, an entry per edge of the job."""


Event = Literal["person", "deadline", "backfill"]
"""What may come from outside: somebody starts a job, the deadline passes, an earlier run's artifacts appear."""

EVERYTHING: frozenset[Event] = frozenset(get_args(Event))


class JobAbstract(NamedTuple):
    status: Status
    has_artifact: bool
    reads: Reads | None


class RunAbstract(NamedTuple):
    late: bool
    fallbacks: bool
    jobs: tuple[JobAbstract, ...]


UNTOUCHED = JobAbstract("pending", False, None)
NAMES = ("a", "b", "c", "d")
CURRENT = {name: artifact(name, 2) for name in NAMES}
SUPERSEDED = {name: artifact(name, 1) for name in NAMES}
EARLIER = {name: artifact(name, run_id="2026-11-28") for name in NAMES}
ARTIFACTS: dict[Read, dict[str, Artifact]] = {"current": CURRENT, "superseded": SUPERSEDED, "earlier run": EARLIER}


@cache
def job_state(name: str, upstreams: tuple[str, ...], abstract: JobAbstract) -> JobState:
    attempted = None
    if abstract.reads is not None:
        attempted = {
            upstream: None if read == "nothing" else ARTIFACTS[read][upstream]
            for upstream, read in zip(upstreams, abstract.reads, strict=True)
        }
    return JobState(
        abstract.status, abstract.status == "running", CURRENT[name] if abstract.has_artifact else None, attempted
    )


@dataclass
class Exploration:
    """All reachable states of one graph."""

    graph: Graph
    events: frozenset[Event]
    plans: dict[RunAbstract, Plan] = field(default_factory=dict)
    successors: dict[RunAbstract, list[RunAbstract]] = field(default_factory=dict)
    transitions: int = 0

    def __post_init__(self) -> None:
        self.names = tuple(self.graph.jobs)
        self.upstreams = {each.job_id: each.upstreams for each in self.graph}
        self.readers = {
            name: [
                (self.names.index(consumer.job_id), consumer.upstreams.index(name))
                for consumer, _ in self.graph.consumers(name)
            ]
            for name in self.names
        }

    def explore(self, *starts: RunAbstract) -> None:
        frontier = list(starts)
        seen = set(starts)
        while frontier:
            state = frontier.pop()
            decided = self.plan(state)
            self.check(state, decided)
            own = list(self.internal(state, decided))
            self.successors[state] = own
            for following in (*own, *self.external(state, decided)):
                self.transitions += 1
                if following not in seen:
                    seen.add(following)
                    frontier.append(following)

    def plan(self, state: RunAbstract) -> Plan:
        decided = self.plans.get(state)
        if decided is None:
            jobs = {
                name: job_state(name, self.upstreams[name], abstract)
                for name, abstract in zip(self.names, state.jobs, strict=True)
            }
            run = RunState(RUN_ID, MOMENT, MOMENT, jobs, EARLIER if state.fallbacks else {})
            decided = self.plans[state] = plan(self.graph, run, AFTER_NINE if state.late else BEFORE_NINE)
        return decided

    # events

    def internal(self, state: RunAbstract, decided: Plan) -> Iterator[RunAbstract]:
        """What happens by itself: ticks, and attempts that end."""
        ticked = self.tick(state, decided)
        if ticked != state:
            yield ticked
        for name in self.running(state):
            yield self.ends(state, name, "failed")
            yield self.ends(state, name, "new")
            if state.jobs[self.names.index(name)].has_artifact:
                yield self.ends(state, name, "equal")

    def external(self, state: RunAbstract, decided: Plan) -> Iterator[RunAbstract]:
        """What comes from outside: the clock, a person, another run."""
        if "deadline" in self.events and not state.late:
            yield RunAbstract(True, state.fallbacks, state.jobs)
        if "backfill" in self.events and not state.fallbacks:
            yield RunAbstract(state.late, True, state.jobs)
        if "person" not in self.events:
            return
        for decision in decided.decisions.values():
            if decision.readiness == "run" and not decision.state.in_flight:
                yield self.start(state, decision)

    def running(self, state: RunAbstract) -> list[str]:
        return [name for name, abstract in zip(self.names, state.jobs, strict=True) if abstract.status == "running"]

    def tick(self, state: RunAbstract, decided: Plan) -> RunAbstract:
        for decision in decided.decisions.values():
            if decision.skips:
                state = self.put(state, decision.job_id, JobAbstract("skipped", False, self.reads(decision)))
            elif decision.due:
                state = self.start(state, decision)
        return state

    def start(self, state: RunAbstract, decision: Decision) -> RunAbstract:
        before = state.jobs[self.names.index(decision.job_id)]
        self.check_start(state, decision)
        return self.put(state, decision.job_id, JobAbstract("running", before.has_artifact, self.reads(decision)))

    def ends(self, state: RunAbstract, name: str, how: Literal["new", "equal", "failed"]) -> RunAbstract:
        before = state.jobs[self.names.index(name)]
        if how == "failed":
            return self.put(state, name, JobAbstract("failed", before.has_artifact, before.reads))
        state = self.put(state, name, JobAbstract("done", True, before.reads))
        if how == "new":
            for consumer, position in self.readers[name]:
                reads = state.jobs[consumer].reads
                if reads is not None and reads[position] == "current":
                    superseded: Reads = (*reads[:position], "superseded", *reads[position + 1 :])
                    status, has_artifact, _ = state.jobs[consumer]
                    state = self.put(state, self.names[consumer], JobAbstract(status, has_artifact, superseded))
        return state

    def put(self, state: RunAbstract, name: str, abstract: JobAbstract) -> RunAbstract:
        position = self.names.index(name)
        jobs = (*state.jobs[:position], abstract, *state.jobs[position + 1 :])
        return RunAbstract(state.late, state.fallbacks, jobs)

    def reads(self, decision: Decision) -> Reads:
        return tuple(
            "nothing" if each.artifact is None else "current" if each.artifact.run_id == RUN_ID else "earlier run"
            for each in decision.edges
        )

    # properties

    def check_start(self, state: RunAbstract, decision: Decision) -> None:
        """Safety, told from the edges alone: what a starting attempt reads, and beside whom it starts."""
        job_of = dict(zip(self.names, state.jobs, strict=True))
        assert job_of[decision.job_id].status != "running", "two attempts at once"
        for each in decision.edges:
            upstream = job_of[each.edge.upstream]
            if upstream.status == "running":
                assert state.late, "started while an upstream was running"
                assert each.edge.policy in ("degrade", "optional")
            if upstream.has_artifact:
                assert each.artifact == CURRENT[each.edge.upstream], "a usable artifact of this run was passed over"
            elif each.edge.policy == "degrade":
                assert state.fallbacks
                assert each.artifact == EARLIER[each.edge.upstream], "degrade without an artifact of an earlier run"
            else:
                assert each.edge.policy == "optional", "hard and skip edges never start without their input"
                assert each.artifact is None

    def check(self, state: RunAbstract, decided: Plan) -> None:
        requested = set(decided.requests)
        running = idle = 0
        for decision, abstract in zip(decided.decisions.values(), state.jobs, strict=True):
            running += abstract.status == "running"
            idle += decision.due or decision.skips
            if decision.due:
                assert decision.job_id in requested, "may run and is not requested"
                if abstract.has_artifact:
                    reads = zip(decision.edges, abstract.reads or (), strict=True)
                    follows = [each for each, read in reads if each.edge.on_rerun == "follow" and read != "current"]
                    assert follows, "rebuilds an artifact although no edge that follows has other data"
            if abstract.status == "running":
                assert decision.job_id not in requested, "requested while in flight"
            elif abstract.status == "pending":
                assert decision.wanted, "a job that was never attempted is forgotten"
            status = decision.status
            if status == "failed":
                assert abstract.reads is not None, "only what was attempted can be failed"
            elif status == "skipped":
                assert any(each.edge.policy == "skip" for each in decision.edges)
            elif status == "done":
                assert abstract.has_artifact
        assert decided.settled == (not running and not idle), "settled means: nothing in flight and nothing to start"

    def check_quiescence(self) -> None:
        """Left alone, every state comes to rest: no cycle of ticks and ending attempts."""
        unfinished = {state: len(following) for state, following in self.successors.items()}
        predecessors: dict[RunAbstract, list[RunAbstract]] = {state: [] for state in self.successors}
        for state, following in self.successors.items():
            for each in following:
                predecessors[each].append(state)
        resting = [state for state, count in unfinished.items() if count == 0]
        assert all(self.plans[state].settled for state in resting)
        reached = 0
        while resting:
            reached += 1
            for before in predecessors[resting.pop()]:
                unfinished[before] -= 1
                if unfinished[before] == 0:
                    resting.append(before)
        assert reached == len(self.successors), "runs in circles"

    def check_convergence(self) -> None:
        """From every state: once faults are healed and what failed is rerun, everything stands on this run's newest."""
        healed: set[RunAbstract] = set()
        for start in self.successors:
            path = []
            state = start
            while state not in healed:
                path.append(state)
                following = self.heal(state)
                if following is None:
                    self.check_whole(state)
                    break
                state = following
                assert len(path) < 100, "does not converge"
            healed.update(path)

    def heal(self, state: RunAbstract) -> RunAbstract | None:
        if running := self.running(state):
            for name in running:
                state = self.ends(state, name, "new")
            return state
        decided = self.plan(state)
        ticked = self.tick(state, decided)
        if ticked != state:
            return ticked
        for decision in decided.decisions.values():
            if decision.status == "failed" and decision.readiness == "run":
                return self.start(state, decision)
        return None

    def check_whole(self, state: RunAbstract) -> None:
        for decision, abstract in zip(self.plan(state).decisions.values(), state.jobs, strict=True):
            assert abstract.status == "done"
            assert abstract.has_artifact
            for each, read in zip(decision.edges, abstract.reads or (), strict=True):
                assert read == "current" or (each.edge.on_rerun == "pin" and decision.outdated)


def graphs(size: int, on_reruns: tuple[OnRerun, ...]) -> Iterator[Graph]:
    """All graphs of `size` jobs with all policies, up to renaming; those that are refused left out."""
    pairs = list(itertools.combinations(range(size), 2))
    choices: list[tuple[Policy, OnRerun] | None] = [None, *itertools.product(get_args(Policy), on_reruns)]
    seen = set()
    for chosen in itertools.product(choices, repeat=len(pairs)):
        edges = {pair: choice for pair, choice in zip(pairs, chosen, strict=True) if choice is not None}
        name = min(
            tuple(sorted((order[upstream], order[consumer], *choice) for (upstream, consumer), choice in edges.items()))
            for order in itertools.permutations(range(size))
        )
        if name in seen:
            continue
        seen.add(name)
        try:
            yield Graph.build(
                job(
                    NAMES[consumer],
                    *(edge(NAMES[up], *choice) for (up, down), choice in edges.items() if down == consumer),
                    deadline=NINE,
                )
                for consumer in range(size)
            )
        except GraphError:
            continue  # hard on a job that may be skipped


MINUTES = pytest.mark.skipif("EXHAUSTIVE" not in os.environ, reason="takes minutes; set EXHAUSTIVE=1")


@pytest.mark.long
@pytest.mark.parametrize(
    ("size", "on_reruns", "events"),
    [
        pytest.param(1, get_args(OnRerun), EVERYTHING, id="one job"),
        pytest.param(2, get_args(OnRerun), EVERYTHING, id="two jobs"),
        pytest.param(3, ("follow",), EVERYTHING, id="three jobs that follow"),
        pytest.param(3, get_args(OnRerun), EVERYTHING, id="three jobs, pinned too", marks=MINUTES),
        pytest.param(4, ("follow",), frozenset(), id="four jobs, no events from outside"),
        pytest.param(4, ("follow",), frozenset({"deadline", "backfill"}), id="four jobs", marks=MINUTES),
    ],
)
def test_every_reachable_state_is_safe_live_quiescent_and_convergent(
    size: int, on_reruns: tuple[OnRerun, ...], events: frozenset[Event], record_property: Callable[[str, object], None]
) -> None:
    counted = {"graphs": 0, "states": 0, "transitions": 0}
    for graph in graphs(size, on_reruns):
        exploration = Exploration(graph, events)
        exploration.explore(RunAbstract(False, "backfill" not in events, (UNTOUCHED,) * size))
        exploration.check_quiescence()
        exploration.check_convergence()
        counted["graphs"] += 1
        counted["states"] += len(exploration.successors)
        counted["transitions"] += exploration.transitions
    for name, count in counted.items():
        record_property(name, count)
    logging.getLogger(__name__).info("%d jobs: %s", size, counted)
    assert counted["states"] > counted["graphs"]
