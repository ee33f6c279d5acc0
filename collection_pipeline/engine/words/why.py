"""The decision about one job edge by edge, for `collect why`."""

from __future__ import annotations

from dataclasses import dataclass

from collection_pipeline.engine.planning.edges import OnRerun, Policy
from collection_pipeline.engine.planning.lateness import deadline_of
from collection_pipeline.engine.planning.planner import EdgeDecision, Resolution
from collection_pipeline.engine.words.explain import Explanation


@dataclass(frozen=True, slots=True)
class EdgeAccount:
    """One edge: what the upstream is, what the edge makes of it, and what was decided beforehand."""

    upstream: str
    policy: Policy
    on_rerun: OnRerun
    resolution: Resolution
    because: str
    outcome: str
    why: str

    def line(self) -> str:
        return f"{self.upstream} ({self.policy}, {self.on_rerun}): {self.because}; {self.outcome}. Why: {self.why}"


def edge_accounts(explanation: Explanation, job_id: str) -> tuple[EdgeAccount, ...]:
    """The decision edge by edge."""
    return tuple(
        EdgeAccount(
            each.edge.upstream,
            each.edge.policy,
            each.edge.on_rerun,
            each.resolution,
            explanation.condition(each.edge.upstream) + _lateness(explanation, job_id, each),
            _outcome(explanation, each),
            each.edge.why,
        )
        for each in explanation.plan.decisions[job_id].edges
    )


def _outcome(explanation: Explanation, each: EdgeDecision) -> str:
    match each.resolution:
        case "use" if each.artifact is not None:
            return f"uses version {each.artifact.version} of this run"
        case "fallback" if each.artifact is not None:
            return f"uses {explanation.older_data(each.artifact)}"
        case "without":
            return "runs without it"
        case "skip":
            return "skips this run"
        case "blocked":
            lacks = f", with {explanation.no_fallback(each.edge.upstream)}" if each.edge.policy == "degrade" else ""
            return f"blocked until it is repaired{lacks}"
        case _:
            return "waits"


def _lateness(explanation: Explanation, job_id: str, each: EdgeDecision) -> str:
    deadline = deadline_of(explanation.graph[job_id], explanation.run.opened_at)
    if not each.late or deadline is None:
        return ""
    gives_up = "" if each.edge.policy in ("degrade", "optional") else ", but this edge waits on"
    return f", late since {explanation.clock(deadline)}{gives_up}"
