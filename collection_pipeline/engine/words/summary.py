"""A run in a line or two: the sensor's tick text and the text of an alert."""

from __future__ import annotations

from dataclasses import replace

from collection_pipeline.engine.planning.causes import RootCause, roots
from collection_pipeline.engine.planning.planner import EdgeDecision
from collection_pipeline.engine.words.explain import Explanation


def tick_text(explanation: Explanation) -> str:
    """What one tick sees and does in one run, in one line."""
    plan, run_id = explanation.plan, explanation.run.run_id
    starting = set(plan.requests)
    parts = [f"starts {', '.join(plan.requests)}"] if starting else []
    for decision in plan.decisions.values():
        if decision.job_id in starting or decision.status == "done":
            continue
        ends = ", ".join(roots(plan, decision.job_id)) if decision.status == "pending" else ""
        verb = "waits for" if decision.readiness == "wait" else "blocked by"
        parts.append(f"{decision.job_id} {f'{verb} {ends}' if ends else explanation.condition(decision.job_id)}")
    if plan.settled:
        parts.append("settled")
    return f"{run_id}: {'; '.join(parts)}"


def cause_text(explanation: Explanation, cause: RootCause) -> str:
    """The alert about a root cause: what happened, what it did to whom, and what to type."""
    if cause.kind == "check":
        facts, run_id = explanation.facts.of(cause.job_id), explanation.run.run_id
        # Whether all of it is worth its price a second time is for people to judge.
        rerun, look = f"Type: {explanation.rerun_command(cause.job_id)}", f"See: collect status {run_id}"
        said = f"check {cause.check}: {facts.warnings[cause.check]}. {rerun if facts.lacks_answers else look}"
        return f"{cause.job_id} of {run_id} is published with a warning: {said}"
    if cause.kind == "skipped":  # why the upstream failed is said by an alert of its own
        explanation = replace(explanation, brief=True)
    condition = explanation.condition(cause.job_id)
    what = f"late: {condition}" if cause.kind == "late" else condition
    sentences = [f"{cause.job_id} of {explanation.run.run_id} {what}"]
    involved = {cause.job_id, *cause.behind}
    effects = [
        f"{decision.job_id} {_effect(explanation, edge)}"
        for decision in explanation.plan.decisions.values()
        for edge in decision.edges
        if edge.edge.upstream in involved
        and edge.resolution in (("fallback", "without") if decision.readiness == "run" else ("blocked", "skip"))
    ]
    if effects:
        sentences.append("; ".join(effects))
    command = explanation.next_command(cause.job_id)
    if command is not None:
        sentences.append(f"Type: {command}")
    return ". ".join(sentences)


def _effect(explanation: Explanation, edge: EdgeDecision) -> str:
    if edge.resolution == "fallback" and edge.artifact is not None:
        return f"uses {explanation.older_data(edge.artifact)}"
    if edge.resolution == "without":
        return f"runs without {edge.edge.upstream}"
    return "is blocked" if edge.resolution == "blocked" else "is skipped"
