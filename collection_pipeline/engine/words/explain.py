"""A plan in words, the same everywhere: the gate, the sensor's tick, `collect status` and `why`, and the alerts.

Root cause first: what is blocked behind something blocked behind a failure names the failure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from collection_pipeline.engine.planning.causes import roots
from collection_pipeline.engine.planning.edges import Policy
from collection_pipeline.engine.planning.graph import Graph
from collection_pipeline.engine.planning.planner import Decision, Plan
from collection_pipeline.engine.planning.state import Artifact, RunState
from collection_pipeline.engine.words.ages import age, clock, day_of, duration, identity
from collection_pipeline.engine.words.facts import Facts


@dataclass(frozen=True, slots=True)
class WaitsFor:
    """One upstream that a job waits for: through which policy, and because of what."""

    job_id: str
    policy: Policy
    because: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The words for one run: its graph, its state, the plan made of them, and the facts beside.

    `brief` is for a table, in which every job has a row: another job's failure is named there without its reason.
    """

    graph: Graph
    run: RunState
    plan: Plan
    facts: Facts
    brief: bool = False

    def reason(self, job_id: str) -> str:
        """Why the job's status is what it is, in one line; what was kept and what to type where somebody has to act."""
        command = self.next_command(job_id)
        return self.account(job_id) + (f"; type: {command}" if command else "")

    def account(self, job_id: str) -> str:
        """The reason without what to type, for where that stands apart."""
        decision = self.plan.decisions[job_id]
        parts = [self._headline(decision)]
        if decision.status == "done":
            parts += self._annotations(decision)
        if decision.blocked or decision.status == "failed":
            parts += _kept(decision)
        return "; ".join(parts)

    def refusal(self, job_id: str) -> str:
        """What the gate says to somebody who starts a job whose readiness is not "run"."""
        decision = self.plan.decisions[job_id]
        verb = {"wait": "has to wait", "blocked": "is blocked", "skip": "is skipped"}
        idle = [root for root in roots(self.plan, job_id) if self.plan.decisions[root].due]
        parts = [f"{job_id} of {self.run.run_id} {verb[decision.readiness]}: {self._held_by(decision, idle)}"]
        parts += _kept(decision)
        if decision.readiness in ("blocked", "skip"):
            parts.append(f"type: {_in_one_line(self._repairs(job_id))}")
        elif idle:
            commands = [f"collect run {self.run.run_id} --only {root}" for root in idle]
            parts.append(f"type: {_in_one_line(commands)}")
        return "; ".join(parts)

    def waits_for(self, job_id: str) -> tuple[WaitsFor, ...]:
        """The upstreams that keep a pending job from running, or a skipped one from being revived."""
        decision = self.plan.decisions[job_id]
        if decision.status not in ("pending", "skipped"):
            return ()
        return tuple(
            WaitsFor(edge.edge.upstream, edge.edge.policy, self.condition(edge.edge.upstream))
            for edge in decision.edges
            if edge.resolution in ("wait", "blocked", "skip")
        )

    def next_command(self, job_id: str) -> str | None:
        """What to type so that it goes on, in one line; None where it goes on by itself or is finished."""
        return _in_one_line(self._next(job_id)) or None

    def next_commands(self) -> list[str]:
        """What to type so that the whole run goes on: single commands, each once."""
        return list(dict.fromkeys(command for job_id in self.plan.decisions for command in self._next(job_id)))

    def _next(self, job_id: str) -> Sequence[str]:
        decision = self.plan.decisions[job_id]
        if decision.state.in_flight or decision.status == "running":
            return ()
        if decision.status == "failed":
            return (self._mending_command(job_id),)
        if decision.outdated:
            return (f"collect rerun {job_id} {self.run.run_id}",)
        if decision.blocked or (decision.status == "skipped" and decision.readiness == "skip"):
            return self._repairs(job_id)
        return (self._run_command,) if decision.due else ()

    def is_stopped(self, job_id: str) -> bool:
        """Whether the job stands as failed only because its last attempt was interrupted, or its process ended."""
        return self.plan.decisions[job_id].status == "failed" and self.facts.of(job_id).stopped

    def rerun_command(self, job_id: str) -> str:
        """What to type to run a job again; one that lacks answers keeps those it has."""
        missing_only = " --missing-only" if self.facts.of(job_id).lacks_answers else ""
        return f"collect rerun {job_id} {self.run.run_id}{missing_only}"

    def condition(self, job_id: str) -> str:
        """What a job is to those who wait for it: "failed at 06:12 (out of credits)", "running since 06:05"."""
        return self._condition(job_id, brief=self.brief)

    def _condition(self, job_id: str, *, brief: bool) -> str:
        decision, facts = self.plan.decisions[job_id], self.facts.of(job_id)
        match decision.status:
            case "running":
                return "running" + self._at("since", facts.started_at) + _in_run(facts.holder)
            case "failed":
                because = f" ({_one_line(facts.reason)})" if facts.reason and not brief else ""
                return "failed" + self._at("at", facts.finished_at) + because
            case "skipped":
                return f"skipped: {self._held_by(decision)}"
            case "done" if decision.state.in_flight:
                return "about to run again"
            case "done":
                return "without a usable artifact" if decision.state.current is None else "done"
            case "pending":
                due = "about to start" if decision.state.in_flight else "due"
                ahead = {"run": due, "wait": "waits: ", "blocked": "blocked: ", "skip": "to be skipped: "}
                return ahead[decision.readiness] + self._held_by(decision)

    def older_data(self, artifact: Artifact) -> str:
        """An artifact of an earlier run, with its age: what a degraded job says it stands on."""
        zone, moment = self.facts.timezone, self.run.moment
        span = moment - artifact.as_of
        parts = [
            identity(artifact, zone),
            day_of(artifact.as_of, moment, zone),
            *([f"{age(span)} old"] if span else []),
        ]
        shelf = self.graph[artifact.job_id].shelf_life if artifact.job_id in self.graph else None
        if shelf is not None:
            parts.append(f"shelf life {duration(shelf.fail)}")
            if shelf.warn is not None and span > shelf.warn:
                parts.append(f"warned about from {duration(shelf.warn)}")
        return ", ".join(parts)

    def no_fallback(self, job_id: str) -> str:
        """What a degrade edge lacks when there is no artifact of that job to fall back on."""
        shelf = self.graph[job_id].shelf_life
        inside = "" if shelf is None else f" inside its shelf life of {duration(shelf.fail)}"
        return f"nothing of an earlier run{inside}"

    def clock(self, instant: datetime) -> str:
        """The local time, with the date unless it is the run's day."""
        return clock(instant, self.run.moment, self.facts.timezone)

    def _headline(self, decision: Decision) -> str:
        if decision.status == "done" and decision.state.current is not None:
            return f"done: version {decision.state.current.version}"
        return self._condition(decision.job_id, brief=False)

    def _annotations(self, decision: Decision) -> list[str]:
        """What a finished job stands on, where that is not simply its own run's newest, and what its checks warn of."""
        notes = []
        current, consumed = decision.state.current, decision.state.attempted or {}
        elsewhere = replace(self, brief=True)  # the reason of what failed upstream is said of that job
        for upstream, artifact in consumed.items():
            if artifact is None:
                because = f" ({elsewhere.condition(upstream)})" if upstream in self.plan.decisions else ""
                notes.append(f"without {upstream}{because}")
            elif artifact.run_id != self.run.run_id:
                notes.append(f"uses {self.older_data(artifact)}")
        if current is not None and current.degraded and not notes:
            notes.append(f"on older data, as of {self.clock(current.as_of)}")
        notes += [
            f"outdated: {edge.edge.upstream} is at version {edge.upstream.current.version},"
            f" this stands on {_version(consumed.get(edge.edge.upstream), self.run.run_id)}"
            for edge in decision.outdated_edges
            if edge.upstream.current is not None
        ]
        notes += [f"warning: {said}" for said in self.facts.of(decision.job_id).warnings.values()]
        notes += [f"built on retracted data of {name}" for name in self.facts.of(decision.job_id).retracted_inputs]
        return notes

    def _held_by(self, decision: Decision, idle: Collection[str] = ()) -> str:
        """Root causes first, then what the job's own degrade edges lack. `idle` are those that nothing is starting."""
        held = [
            f"{root} {self._idleness(root) if root in idle else self.condition(root)}"
            for root in roots(self.plan, decision.job_id)
        ]
        held += [
            f"{edge.edge.upstream} has {self.no_fallback(edge.edge.upstream)}"
            for edge in decision.edges
            if edge.edge.policy == "degrade" and edge.resolution == "blocked"
        ]
        return " and ".join(held)

    def _idleness(self, job_id: str) -> str:
        return "has not run yet" if self.plan.decisions[job_id].state.attempted is None else "has to run again first"

    def _repairs(self, job_id: str) -> Sequence[str]:
        return list(dict.fromkeys(map(self._mending_command, roots(self.plan, job_id) or (job_id,))))

    def _mending_command(self, job_id: str) -> str:
        """A job that was only stopped goes on; any other is run again."""
        return self._run_command if self.is_stopped(job_id) else self.rerun_command(job_id)

    @property
    def _run_command(self) -> str:
        return f"collect run {self.run.run_id}"

    def _at(self, word: str, instant: datetime | None) -> str:
        return "" if instant is None else f" {word} {self.clock(instant)}"


def _kept(decision: Decision) -> list[str]:
    current = decision.state.current
    return [] if current is None else [f"kept: version {current.version} of this run"]


def _version(artifact: Artifact | None, run_id: str) -> str:
    if artifact is None:
        return "nothing of it"
    return f"version {artifact.version}" + ("" if artifact.run_id == run_id else f" of {artifact.run_id}")


def _in_run(holder: str | None) -> str:
    return "" if holder is None else f" in Dagster run {holder[:8]}"


def _in_one_line(commands: Iterable[str]) -> str:
    # Not by "&&": a repair that leaves another job failed exits 1, and the next one is to follow all the same.
    return "; ".join(commands)


def _one_line(text: str) -> str:
    return " ".join(text.split())
