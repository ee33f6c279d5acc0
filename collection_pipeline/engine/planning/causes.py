"""Root causes: of everything that is wrong in a run, what somebody has to repair. Only these alert."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from collection_pipeline.engine.planning.planner import Decision, EdgeDecision, Plan

CauseKind = Literal["failed", "late", "skipped", "check"]

Warnings = Mapping[str, Collection[str]]
"""By job_id, the soft checks that its current artifact does not pass, but for those that repeat another cause."""


@dataclass(frozen=True, slots=True)
class RootCause:
    """One thing that went wrong: which job, in what way, and the jobs on the way from it to those it holds up.

    `key` names its episode. `continues` are the episodes it belongs to if one of them is open: late that turns into
    failed, or lateness that moves on from search to details and news, is the same trouble and does not page twice.
    `check` is the soft check that the current artifact does not pass, for the kind of that name.
    """

    kind: CauseKind
    job_id: str
    key: str
    behind: tuple[str, ...] = ()
    continues: frozenset[str] = frozenset()
    check: str = ""

    def episode(self, open_keys: Collection[str]) -> str:
        """The key to file this cause under, given the episodes that are open."""
        return self.key if self.key in open_keys else min(self.continues & set(open_keys), default=self.key)


def roots(plan: Plan, job_id: str) -> tuple[str, ...]:
    """The jobs at the end of whatever keeps `job_id` from running, nearest first; empty when nothing does."""
    return tuple(_ends(plan, [edge.edge.upstream for edge in _holding(plan.decisions[job_id])]))


def root_causes(plan: Plan, warnings: Warnings) -> tuple[RootCause, ...]:
    """What to alert about, upstreams first: failed and skipped jobs, soft checks, and what makes deadlines pass."""
    decisions = plan.decisions.values()
    behind: dict[str, list[str]] = {}
    for decision in decisions:
        if decision.blocked or decision.status == "skipped":
            for root in roots(plan, decision.job_id):
                behind.setdefault(root, []).append(decision.job_id)
    causes: list[RootCause] = []
    for decision in decisions:
        job_id = decision.job_id
        if decision.status == "failed" and not decision.state.in_flight:
            held_up = tuple(behind.get(job_id, ()))
            late = frozenset(f"late:{each}" for each in (job_id, *held_up))
            causes.append(RootCause("failed", job_id, f"failed:{job_id}", held_up, late))
        elif decision.status == "skipped":
            causes.append(RootCause("skipped", job_id, f"skipped:{job_id}"))
        warned = warnings.get(job_id, ())
        causes += [RootCause("check", job_id, f"check:{job_id}:{name}", check=name) for name in warned]
    return (*causes, *_late_causes(plan))


def healed(plan: Plan, key: str, warnings: Warnings) -> bool:
    """Whether the episode is over: its job has delivered (and passes the check), or is no longer in the graph."""
    kind, job_id, *check = key.split(":")
    decision = plan.decisions.get(job_id)
    if decision is None:
        return True
    if kind == "check":
        return decision.state.current is not None and check[0] not in warnings.get(job_id, ())
    return decision.outlook == "settled"


def _late_causes(plan: Plan) -> list[RootCause]:
    waited_for = dict.fromkeys(
        edge.edge.upstream
        for decision in plan.decisions.values()
        for edge in decision.edges
        if edge.late and not _has_own(decision, edge)
    )
    by_root: dict[str, list[str]] = {}
    for upstream in (job_id for job_id in plan.decisions if job_id in waited_for):
        for root in _ends(plan, [upstream]):
            by_root.setdefault(root, []).append(upstream)
    causes = []
    for root, upstreams in by_root.items():
        involved = dict.fromkeys((root, *upstreams))
        above = _with_upstreams(plan, involved)
        continues = frozenset(f"{kind}:{job_id}" for kind in ("failed", "late") for job_id in above)
        causes.append(RootCause("late", root, f"late:{upstreams[0]}", tuple(involved)[1:], continues))
    return causes


def _with_upstreams(plan: Plan, job_ids: Collection[str]) -> set[str]:
    """These jobs and everything that they stand on: what made search late makes the details late, and then the news."""
    found = set(job_ids)
    for job_id in reversed(tuple(plan.decisions)):
        if job_id in found:
            found.update(edge.edge.upstream for edge in plan.decisions[job_id].edges)
    return found


def _has_own(decision: Decision, edge: EdgeDecision) -> bool:
    """Whether the job already stands on an artifact of this run: a rerun after the deadline makes nobody late."""
    consumed = (decision.state.attempted or {}).get(edge.edge.upstream)
    return (
        decision.state.current is not None and consumed is not None and consumed.run_id == decision.state.current.run_id
    )


def _holding(decision: Decision) -> list[EdgeDecision]:
    """The edges that keep the job from running: those that say what all together say."""
    return [edge for edge in decision.edges if edge.resolution == decision.readiness]


def _ends(plan: Plan, starts: list[str]) -> list[str]:
    """The ends of the chains of waiting, blocked and skipped jobs that begin at `starts`."""
    ends: list[str] = []
    seen: set[str] = set()
    to_visit = list(reversed(starts))
    while to_visit:
        job_id = to_visit.pop()
        if job_id in seen:
            continue
        seen.add(job_id)
        decision = plan.decisions[job_id]
        further = [] if decision.status in ("running", "failed", "done") else _holding(decision)
        if further:
            to_visit.extend(edge.edge.upstream for edge in reversed(further))
        else:
            ends.append(job_id)
    return ends
