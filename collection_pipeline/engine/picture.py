"""The graph for people and machines: text, mermaid, JSON, and the generated page docs/DEPENDENCIES.md."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from collection_pipeline.engine.ages import duration
from collection_pipeline.engine.graph import Graph, Job

_ARROWS = {"hard": "==>", "degrade": "-->", "skip": "-.->", "optional": "-.->"}

_INTRODUCTION = """\
# Dependencies

Generated from the edges in the code; a test keeps the two equal. Every arrow answers what happens to its consumer when
the upstream is unavailable (*policy*), whether the consumer follows a rerun of the upstream (*on rerun*), and *why*."""

_ABOUT_TERMS = """\
A shelf life says how old an artifact may be, seen from the moment of the run that falls back to it. From its deadline
on, a job no longer waits at its degrade and optional edges for what is still to come."""

_ABOUT_POLICIES = """\
While the upstream is pending or running and the consumer's deadline has not passed, the consumer waits, whatever the
policy. When the upstream is unavailable (failed, skipped, blocked, or late), the consumer"""

_POLICIES = {
    "hard": "waits until the upstream is repaired, then starts by itself",
    "degrade": "uses the newest usable artifact of an earlier run inside its shelf life, saying so, or waits",
    "skip": "is skipped for this run, with an alert; while the upstream is only blocked, it waits",
    "optional": "runs without this input, with an alert and a note in the artifact",
}

_ABOUT_RERUNS = """\
Skip beats blocked, blocked beats wait, wait beats run. With *follow* the consumer runs again when the upstream of the
same run has other data; with *pin* it keeps what it has and shows as outdated."""


def graph_text(graph: Graph) -> str:
    """Every job, upstreams first, with its edges beneath it."""
    lines = []
    for job in graph:
        lines.append(job.job_id + (f"  ({', '.join(_terms(job))})" if _terms(job) else ""))
        width = max((len(edge.upstream) for edge in job.edges), default=0)
        lines += [
            f"  ← {edge.upstream:<{width}}  {edge.policy:<8}  {edge.on_rerun:<6}  {_one_line(edge.why)}"
            for edge in job.edges
        ]
    return "\n".join(lines) + "\n"


def graph_json(graph: Graph) -> str:
    """The graph as one line of JSON, in the form in which a run remembers it."""
    return graph.to_json()


def graph_mermaid(graph: Graph) -> str:
    """A mermaid flowchart. Names are quoted and escaped and nodes are numbered, so that no name can end its label."""
    node = {job_id: f"job{number}" for number, job_id in enumerate(graph.jobs)}
    lines = ["flowchart TD", *(f'    {node[job.job_id]}["{_label(job.job_id)}"]' for job in graph)]
    lines += [
        f'    {node[edge.upstream]} {_ARROWS[edge.policy]}|"{edge.policy}, {edge.on_rerun}"| {node[job.job_id]}'
        for job in graph
        for edge in job.edges
    ]
    return "\n".join(lines) + "\n"


def dependencies_page(graph: Graph) -> str:
    """The page docs/DEPENDENCIES.md: what each edge decides and why, and what the words mean."""
    edges = [(edge.upstream, job.job_id, edge.policy, edge.on_rerun, edge.why) for job in graph for edge in job.edges]
    terms = [(job.job_id, "; ".join(_terms(job)) or "no limit") for job in graph]
    parts = (
        _INTRODUCTION,
        f"```mermaid\n{graph_mermaid(graph)}```",
        "## Edges",
        _table(("upstream", "consumer", "policy", "on rerun", "why"), edges),
        "## Shelf lives and deadlines",
        _ABOUT_TERMS,
        _table(("job", "keeps and waits"), terms),
        "## Policies",
        _ABOUT_POLICIES,
        _table(("policy", "the consumer"), list(_POLICIES.items())),
        _ABOUT_RERUNS,
    )
    return "\n\n".join(parts) + "\n"


def _terms(job: Job) -> list[str]:
    terms = []
    if job.shelf_life is not None:
        warn = "" if job.shelf_life.warn is None else f", with a warning from {duration(job.shelf_life.warn)}"
        terms.append(f"shelf life {duration(job.shelf_life.fail)}{warn}")
    if job.deadline is not None:
        terms.append(f"deadline {job.deadline.cron} {job.deadline.timezone}")
    return terms


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *(tuple(_cell(text) for text in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"([\\`*_|\[\]~])", r"\\\1", html.escape(_one_line(text), quote=False))


def _label(text: str) -> str:
    """Text that mermaid shows as it is: everything but letters, digits, spaces, `_` and `-` by its character code."""
    return re.sub(r"[^\w \-]", lambda match: f"#{ord(match[0])};", _one_line(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())
